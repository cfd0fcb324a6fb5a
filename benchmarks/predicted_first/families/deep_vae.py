"""A very deep VAE: residual blocks with a latent each, a mixture of logistics over pixels, steps skipped when they are bad, KL that grows."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, ZDIM, MIXTURES, BATCH, SIZE = 384, 16, 10, 24, 64
ENCODER = "64x6,64d2,32x6,32d2,16x4,16d2,8x3,8d8,1x2"
DECODER = "1x1,8m1,8x3,16m8,16x4,32m16,32x8,64m32,64x6"
SKIP = 1e5


def parse(text):
    for part in text.split(","):
        if "x" in part:
            res, n = part.split("x")
            yield from ((int(res), None) for _ in range(int(n)))
        else:
            res, other = part.replace("m", "d").split("d")
            yield int(res), int(other)


def get_conv(a, b, k, zero=False, scaled=1.0):
    conv = nn.Conv2d(a, b, k, padding=k // 2)
    conv.bias.data *= 0.0
    conv.weight.data *= 0.0 if zero else scaled
    return conv


class Block(nn.Module):
    def __init__(self, a, mid, b, down_rate=None, residual=False, use_3x3=True, zero_last=False):
        super().__init__()
        self.down_rate, self.residual = down_rate, residual
        k = 3 if use_3x3 else 1
        self.c1, self.c2, self.c3 = get_conv(a, mid, 1), get_conv(mid, mid, k), get_conv(mid, mid, k)
        self.c4 = get_conv(mid, b, 1, zero=zero_last)

    def forward(self, x):
        xhat = self.c1(F.gelu(x))
        xhat = self.c2(F.gelu(xhat))
        xhat = self.c3(F.gelu(xhat))
        xhat = self.c4(F.gelu(xhat))
        out = x + xhat if self.residual else xhat
        if self.down_rate is not None:
            out = F.avg_pool2d(out, kernel_size=self.down_rate, stride=self.down_rate)
        return out


class DecBlock(nn.Module):
    def __init__(self, res, mixin, n):
        super().__init__()
        self.res, self.mixin = res, mixin
        self.enc = Block(WIDTH * 2, WIDTH // 4, ZDIM * 2, use_3x3=res > 2)
        self.prior = Block(WIDTH, WIDTH // 4, ZDIM * 2 + WIDTH, use_3x3=res > 2, zero_last=True)
        self.z_proj = get_conv(ZDIM, WIDTH, 1, scaled=np.sqrt(1 / n))
        self.resnet = Block(WIDTH, WIDTH // 4, WIDTH, residual=True, use_3x3=res > 2)

    def forward(self, xs, activations=None, t=None):
        if self.mixin is not None:
            xs[self.res] = xs[self.res] + F.interpolate(xs[self.mixin], scale_factor=self.res // self.mixin)
        x = xs[self.res]
        feats = self.prior(x)
        pm, pv, xpp = feats[:, :ZDIM], feats[:, ZDIM : 2 * ZDIM], feats[:, 2 * ZDIM :]
        x = x + xpp
        kl = None
        if activations is not None:
            qm, qv = self.enc(torch.cat([x, activations[self.res]], dim=1)).chunk(2, dim=1)
            z = torch.exp(qv) * torch.randn_like(qm) + qm
            kl = -0.5 + pv - qv + 0.5 * (qv.exp() ** 2 + (qm - pm) ** 2) / (pv.exp() ** 2)
        else:
            z = torch.exp(pv + np.log(t)) * torch.randn_like(pm) + pm
        xs[self.res] = self.resnet(x + self.z_proj(z))
        return xs, kl


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_conv = get_conv(3, WIDTH, 3)
        self.enc = nn.ModuleList(Block(WIDTH, WIDTH // 4, WIDTH, d, True, r > 2) for r, d in parse(ENCODER))
        blocks = list(parse(DECODER))
        self.dec = nn.ModuleList(DecBlock(r, m, len(blocks)) for r, m in blocks)
        self.bias_xs = nn.ParameterList(nn.Parameter(torch.zeros(1, WIDTH, r, r)) for r in (1, 8, 16, 32))
        self.gain, self.bias = nn.Parameter(torch.ones(1, WIDTH, 1, 1)), nn.Parameter(torch.zeros(1, WIDTH, 1, 1))
        self.out_conv = get_conv(WIDTH, MIXTURES * 10, 1)

    def decode(self, n, activations=None, t=None):
        xs = {p.shape[2]: p.repeat(n, 1, 1, 1) for p in self.bias_xs}
        xs[SIZE] = torch.zeros(n, WIDTH, SIZE, SIZE, device=self.gain.device)
        kls = []
        for block in self.dec:
            xs, kl = block(xs, activations, t)
            kls.append(kl)
        return self.out_conv(xs[SIZE] * self.gain + self.bias).permute(0, 2, 3, 1), kls

    def forward(self, x, target, beta):
        x = self.in_conv(x.permute(0, 3, 1, 2).contiguous())
        activations = {x.shape[2]: x}
        for block in self.enc:
            x = block(x)
            activations[x.shape[2]] = x
        out, kls = self.decode(len(x), activations)
        ndims = SIZE * SIZE * 3
        distortion = mixture_loss(target, out)
        rate = sum(kl.sum(dim=(1, 2, 3)) for kl in kls) / ndims
        return dict(elbo=(distortion + beta * rate).mean(), distortion=distortion.mean(), rate=rate.mean())


def mixture_loss(x, l):
    """Discretised logistics, three channels that condition on each other; pixels lie in [-1, 1]."""
    probs, l = l[..., :MIXTURES], l[..., MIXTURES:].reshape(*x.shape, MIXTURES * 3)
    means, log_scales, coeffs = l[..., :MIXTURES], l[..., MIXTURES : 2 * MIXTURES].clamp(min=-7.0), torch.tanh(l[..., 2 * MIXTURES :])
    x = x.unsqueeze(-1) + torch.zeros_like(means)
    m2 = means[:, :, :, 1] + coeffs[:, :, :, 0] * x[:, :, :, 0]
    m3 = means[:, :, :, 2] + coeffs[:, :, :, 1] * x[:, :, :, 0] + coeffs[:, :, :, 2] * x[:, :, :, 1]
    centered = x - torch.stack([means[:, :, :, 0], m2, m3], dim=3)
    inv = torch.exp(-log_scales)
    plus_in, min_in = inv * (centered + 1.0 / 255.0), inv * (centered - 1.0 / 255.0)
    cdf_delta = torch.sigmoid(plus_in) - torch.sigmoid(min_in)
    mid = inv * centered
    log_pdf_mid = mid - log_scales - 2.0 * F.softplus(mid)
    inner = torch.where(cdf_delta > 1e-5, torch.log(torch.clamp(cdf_delta, min=1e-12)), log_pdf_mid - np.log(127.5))
    inner = torch.where(x > 0.999, -F.softplus(min_in), inner)
    log_probs = torch.where(x < -0.999, plus_in - F.softplus(plus_in), inner)
    log_probs = log_probs.sum(dim=3) + torch.log_softmax(probs, -1)
    return -torch.logsumexp(log_probs, -1).sum(dim=[1, 2]) / (SIZE * SIZE * 3)


torch.manual_seed(0)
vae, ema = VAE().cuda(), VAE().cuda()
ema.load_state_dict(vae.state_dict())
ema.requires_grad_(False)
optimizer = torch.optim.AdamW(vae.parameters(), lr=1.5e-4, weight_decay=0.01, betas=(0.9, 0.9))
skipped = 0
for i in range(4):
    raw = torch.randint(0, 256, (BATCH, SIZE, SIZE, 3), dtype=torch.uint8).cuda(non_blocking=True).float()
    data_input, target = (raw - 116.2373) / 69.37404, (raw - 127.5) / 127.5
    vae.zero_grad()
    stats = vae(data_input, target, beta=min(1.0, 0.25 * (i + 1)))
    stats["elbo"].backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(vae.parameters(), 200.0).item()
    distortion_nans, rate_nans = torch.isnan(stats["distortion"]).sum(), torch.isnan(stats["rate"]).sum()
    stats.update(rate_nans=0 if rate_nans == 0 else 1, distortion_nans=0 if distortion_nans == 0 else 1)
    if stats["distortion_nans"] == 0 and stats["rate_nans"] == 0 and grad_norm < SKIP:
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(ema.parameters()), list(vae.parameters()), 0.001)
    else:
        skipped += 1
    print(i, f"elbo {stats['elbo'].item():.4f} norm {grad_norm:.2f} skipped {skipped}", flush=True)
with torch.no_grad():
    images = torch.cat([ema.decode(8, t=t)[0][..., MIXTURES : MIXTURES + 3] for t in (1.0, 0.8, 0.6)])
print(images.cpu().numpy().shape)
