"""An energy-based model: Langevin steps on pictures, a replay buffer on the host, weights frozen while it samples."""

import random

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.nn.utils import spectral_norm

BATCH, SIZE, STEPS, BUFFER = 256, 32, 20, 10000


class SampleBuffer:
    def __init__(self, max_samples=BUFFER):
        self.max_samples = max_samples
        self.buffer = []

    def push(self, samples, class_ids):
        samples, class_ids = samples.detach().to("cpu"), class_ids.detach().to("cpu")
        for sample, class_id in zip(samples, class_ids):
            self.buffer.append((sample.detach(), class_id))
            if len(self.buffer) > self.max_samples:
                self.buffer.pop(0)

    def get(self, n):
        samples, ids = zip(*random.choices(self.buffer, k=n))
        return torch.stack(samples, 0), torch.tensor(ids)


def sample_buffer(buffer, batch_size=BATCH, p=0.95, device="cuda"):
    if len(buffer.buffer) < 1:
        return torch.rand(batch_size, 3, SIZE, SIZE, device=device), torch.randint(0, 10, (batch_size,), device=device)
    n_replay = (torch.rand(batch_size) < p).sum().item()
    replay, replay_id = buffer.get(n_replay)
    fresh = torch.rand(batch_size - n_replay, 3, SIZE, SIZE, device=device)
    fresh_id = torch.randint(0, 10, (batch_size - n_replay,), device=device)
    return torch.cat([replay.to(device), fresh], 0), torch.cat([replay_id.to(device), fresh_id], 0)


class ResBlock(nn.Module):
    def __init__(self, a, b, n_class=10, downsample=False):
        super().__init__()
        self.conv1 = spectral_norm(nn.Conv2d(a, b, 3, padding=1, bias=False))
        self.conv2 = spectral_norm(nn.Conv2d(b, b, 3, padding=1, bias=False))
        self.class_embed = nn.Embedding(n_class, b * 4)
        self.class_embed.weight.data[:, : b * 2] = 1
        self.class_embed.weight.data[:, b * 2 :] = 0
        self.skip = nn.Sequential(spectral_norm(nn.Conv2d(a, b, 1, bias=False))) if a != b or downsample else None
        self.downsample = downsample

    def forward(self, x, class_id):
        w1, w2, b1, b2 = self.class_embed(class_id).unsqueeze(2).unsqueeze(3).chunk(4, 1)
        out = w1 * self.conv1(x) + b1
        out = F.leaky_relu(out, negative_slope=0.2)
        out = w2 * self.conv2(out) + b2
        out = out + (x if self.skip is None else self.skip(x))
        if self.downsample:
            out = F.avg_pool2d(out, 2)
        return F.leaky_relu(out, negative_slope=0.2)


class IGEBM(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = spectral_norm(nn.Conv2d(3, 128, 3, padding=1))
        self.blocks = nn.ModuleList(
            [ResBlock(128, 128, downsample=True), ResBlock(128, 128), ResBlock(128, 256, downsample=True)]
            + [ResBlock(256, 256), ResBlock(256, 256, downsample=True), ResBlock(256, 256)]
        )
        self.linear = nn.Linear(256, 1)

    def forward(self, x, class_id):
        out = F.leaky_relu(self.conv1(x), negative_slope=0.2)
        for block in self.blocks:
            out = block(out, class_id)
        out = F.relu(out)
        out = out.view(out.shape[0], out.shape[1], -1).sum(2)
        return self.linear(out)


def requires_grad(parameters, flag=True):
    for p in parameters:
        p.requires_grad = flag


def clip_grad(parameters, optimizer):
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                state = optimizer.state[p]
                if "step" not in state or state["step"] < 1:
                    continue
                bound = 3 * torch.sqrt(state["exp_avg_sq"] / (1 - 0.999 ** state["step"].item())) + 0.1
                p.grad.data.copy_(torch.max(torch.min(p.grad.data, bound), -bound))


model = IGEBM().cuda()
noise = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda")
parameters = list(model.parameters())
optimizer = optim.Adam(parameters, lr=1e-4, betas=(0.0, 0.999))
buffer = SampleBuffer()
for it in range(4):
    pos_img, pos_id = torch.rand(BATCH, 3, SIZE, SIZE).cuda(), torch.randint(0, 10, (BATCH,)).cuda()
    neg_img, neg_id = sample_buffer(buffer)
    neg_img.requires_grad = True
    requires_grad(parameters, False)
    model.eval()
    for k in range(STEPS):
        noise.normal_(0, 0.005)
        neg_img.data.add_(noise.data)
        neg_out = model(neg_img, neg_id)
        neg_out.sum().backward()
        neg_img.grad.data.clamp_(-0.01, 0.01)
        neg_img.data.add_(neg_img.grad.data, alpha=-10)
        neg_img.grad.detach_()
        neg_img.grad.zero_()
        neg_img.data.clamp_(0, 1)
    neg_img = neg_img.detach()
    requires_grad(parameters, True)
    model.train()
    model.zero_grad()
    pos_out, neg_out = model(pos_img, pos_id), model(neg_img, neg_id)
    loss = (pos_out**2 + neg_out**2) + (pos_out - neg_out)
    loss = loss.mean()
    loss.backward()
    clip_grad(parameters, optimizer)
    optimizer.step()
    buffer.push(neg_img, neg_id)
    print(f"{it} loss: {loss.item():.5f}", flush=True)
