"""Fine-tuning of a latent diffusion model: a frozen encoder of pictures and of text in fp16, low-rank adapters in a U-Net."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel


class Adapted(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x.to(self.a.weight.dtype))).to(x.dtype)


class Residual(nn.Module):
    def __init__(self, a, b, time=None):
        super().__init__()
        self.one, self.two = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
        self.norm_one, self.norm_two = nn.GroupNorm(32, a), nn.GroupNorm(32, b)
        self.time = nn.Linear(time, b) if time else None
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t=None):
        y = self.one(F.silu(self.norm_one(x)))
        if self.time is not None:
            y = y + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.two(F.silu(self.norm_two(y)))


class Attention(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.heads = heads
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.k, self.v = nn.Linear(context, width, bias=False), nn.Linear(context, width, bias=False)

    def forward(self, x, context):
        q, k, v = (f(s).unflatten(2, (self.heads, -1)).transpose(1, 2) for f, s in ((self.q, x), (self.k, context), (self.v, context)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.norm, self.into, self.out = nn.GroupNorm(32, width), nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width, width, 8), Attention(width, context, 8)
        self.gate, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, context):
        y = self.into(self.norm(x)).flatten(2).transpose(1, 2)
        z = self.norms[0](y)
        y = y + self.own(z, z)
        y = y + self.cross(self.norms[1](y), context)
        value, gate = self.gate(self.norms[2](y)).chunk(2, 2)
        y = y + self.down(value * F.gelu(gate))
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class UNet(nn.Module):
    def __init__(self, widths=(320, 640, 1280), context=768, time=1280):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, widths[0], 3, padding=1)
        self.down, self.up, kept, a = nn.ModuleList(), nn.ModuleList(), [widths[0]], widths[0]
        for level, b in enumerate(widths):
            for _ in range(2):
                self.down.append(nn.ModuleList([Residual(a, b, time), Transformer(b, context)]))
                kept.append(a := b)
            if level < len(widths) - 1:
                self.down.append(nn.ModuleList([nn.Conv2d(a, a, 3, 2, 1)]))
                kept.append(a)
        self.middle = nn.ModuleList([Residual(a, a, time), Transformer(a, context), Residual(a, a, time)])
        for level, b in reversed(list(enumerate(widths))):
            for index in range(3):
                parts = [Residual(a + kept.pop(), b, time), Transformer(b, context)]
                if level and index == 2:
                    parts.append(nn.Conv2d(b, b, 3, padding=1))
                self.up.append(nn.ModuleList(parts))
                a = b
        self.norm, self.last = nn.GroupNorm(32, a), nn.Conv2d(a, 4, 3, padding=1)

    def forward(self, x, steps, context):
        half = self.time[0].in_features // 2
        angles = steps[:, None].float() * torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
        t = self.time(torch.cat([angles.cos(), angles.sin()], 1).to(x.dtype))
        x = self.first(x)
        kept = [x]
        for parts in self.down:
            x = parts[0](x) if len(parts) == 1 else parts[1](parts[0](x, t), context)
            kept.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, t), context), t)
        for parts in self.up:
            x = parts[1](parts[0](torch.cat([x, kept.pop()], 1), t), context)
            if len(parts) == 3:
                x = parts[2](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.norm(x)))


def encoder(widths=(128, 256, 512, 512)):
    parts, a = [nn.Conv2d(3, 128, 3, padding=1)], 128
    for level, b in enumerate(widths):
        parts += [Residual(a, b), Residual(b, b)]
        if level < 3:
            parts.append(nn.Conv2d(b, b, 3, 2, 1))
        a = b
    return nn.Sequential(*parts, nn.GroupNorm(32, a), nn.SiLU(), nn.Conv2d(a, 8, 3, padding=1))


torch.manual_seed(0)
encode = encoder().requires_grad_(False).to("cuda", torch.float16)
text = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_attention_heads=12)).requires_grad_(False).to("cuda", torch.float16)
unet = UNet().requires_grad_(False).to("cuda", torch.float16)
for module in list(unet.modules()):
    if isinstance(module, Attention):
        for name in ("q", "k", "v", "out"):
            adapter = Adapted(getattr(module, name)).cuda()
            adapter.a.float(), adapter.b.float()
            setattr(module, name, adapter)
adapted = [p for p in unet.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(adapted, 1e-4)
scaler = torch.amp.GradScaler("cuda")
products = torch.linspace(0.99915, 0.0047, 1000, device="cuda")

for _ in range(4):
    pictures = torch.rand(4, 3, 512, 512).to("cuda", torch.float16)
    tokens = torch.randint(0, 49000, (4, 77)).cuda()
    with torch.autocast("cuda", torch.float16):
        mean, spread = encode(pictures).chunk(2, 1)
        latents = (mean + spread.clamp(-30, 20).mul(0.5).exp() * torch.randn_like(mean)) * 0.18215
        noise = torch.randn_like(latents)
        steps = torch.randint(0, 1000, (4,), device="cuda")
        kept = products[steps].view(-1, 1, 1, 1).to(latents.dtype)
        noisy = kept.sqrt() * latents + (1 - kept).sqrt() * noise
        context = text(tokens).last_hidden_state
        made = unet(noisy, steps, context)
        loss = F.mse_loss(made.float(), noise.float())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(adapted, 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
