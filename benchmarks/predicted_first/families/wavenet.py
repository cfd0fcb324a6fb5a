"""WaveNet: gated dilated causal convolutions over mu-law sound, one-hot inputs, a global condition, samples at the end."""

import torch
import torch.nn as nn
import torch.nn.functional as F

QUANT, RES, SKIP, COND = 256, 64, 256, 32
BATCH, LENGTH = 8, 16000


def mu_law(x):
    mu = QUANT - 1
    y = torch.sign(x) * torch.log1p(mu * x.abs()) / torch.log1p(torch.tensor(float(mu), device=x.device))
    edges = torch.linspace(-1, 1, QUANT + 1, device=x.device)[1:-1]
    return torch.bucketize(y, edges)


def one_hot(q):
    return torch.zeros(q.size(0), QUANT, q.size(1), device=q.device).scatter_(1, q.unsqueeze(1), 1.0)


class CausalConv1d(nn.Conv1d):
    def __init__(self, cin, cout, k, dilation=1):
        super().__init__(cin, cout, k, dilation=dilation, padding=(k - 1) * dilation)

    def forward(self, x):
        out = super().forward(x)
        return out[..., : -self.padding[0]] if self.padding[0] else out


class Block(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.dilated = CausalConv1d(RES, 2 * RES, 2, dilation)
        self.cond = nn.Conv1d(COND, 2 * RES, 1, bias=False)
        self.res = nn.Conv1d(RES, RES, 1)
        self.skip = nn.Conv1d(RES, SKIP, 1)

    def forward(self, x, c):
        f, g = (self.dilated(x) + self.cond(c)).chunk(2, 1)
        z = torch.tanh(f) * torch.sigmoid(g)
        return self.res(z) + x, self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, stacks=3, layers=10, speakers=109):
        super().__init__()
        self.speaker = nn.Embedding(speakers, COND)
        self.first = CausalConv1d(QUANT, RES, 2)
        self.blocks = nn.ModuleList(Block(2**i) for _ in range(stacks) for i in range(layers))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(SKIP, SKIP, 1), nn.ReLU(), nn.Conv1d(SKIP, QUANT, 1))

    def forward(self, x, speaker):
        c = self.speaker(speaker).unsqueeze(-1)
        x = self.first(x)
        total = 0
        for block in self.blocks:
            x, skip = block(x, c)
            total = total + skip
        return self.end(total)


torch.manual_seed(0)
device = torch.device("cuda")
model = WaveNet().to(device)
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
for step in range(4):
    wave = torch.rand(BATCH, LENGTH + 1).mul_(2).sub_(1).to(device, non_blocking=True)
    speaker = torch.randint(0, 109, (BATCH,)).to(device)
    q = mu_law(wave)
    logits = model(one_hot(q[:, :-1]), speaker)
    loss = F.cross_entropy(logits, q[:, 1:])
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    average.update_parameters(model)
    print(f"{step} {loss.item():.4f}", flush=True)

average.eval()
with torch.no_grad():
    sample = torch.full((1, 3100), QUANT // 2, dtype=torch.long, device=device)
    who = torch.zeros(1, dtype=torch.long, device=device)
    for _ in range(8):
        p = F.softmax(average(one_hot(sample[:, -3100:]), who)[:, :, -1], dim=1)
        sample = torch.cat([sample, torch.multinomial(p, 1)], dim=1)
print(sample.shape)
