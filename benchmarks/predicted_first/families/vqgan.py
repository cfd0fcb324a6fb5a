"""Pictures in tokens: a quantised autoencoder, features of VGG, and a judge weighed by gradients at the last layer."""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

WIDTH, CODES, DIM, BATCH = 96, 8192, 256, 6


def norm(width):
    return nn.GroupNorm(32, width, eps=1e-6)


class Res(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.one, self.two = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
        self.a, self.b, self.skip = norm(a), norm(b), nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x):
        y = self.one(F.silu(self.a(x)))
        return self.skip(x) + self.two(F.silu(self.b(y)))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = norm(width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).chunk(3, 1)
        weights = torch.bmm(q.transpose(1, 2), k).mul(q.shape[1] ** -0.5).softmax(-1)
        return x + self.out(torch.bmm(v, weights.transpose(1, 2)).view_as(x))


class Down(nn.Conv2d):
    def forward(self, x):
        return super().forward(F.pad(x, (0, 1, 0, 1)))


class Up(nn.Conv2d):
    def forward(self, x):
        return super().forward(F.interpolate(x, scale_factor=2.0, mode="nearest"))


MULTIPLES = (1, 1, 2, 4)
encoder, a = [nn.Conv2d(3, WIDTH, 3, padding=1)], WIDTH
for n, multiple in enumerate(MULTIPLES):
    encoder += [Res(a, multiple * WIDTH), Res(multiple * WIDTH, multiple * WIDTH)]
    a = multiple * WIDTH
    encoder += [Down(a, a, 3, 2)] if n < len(MULTIPLES) - 1 else [Attention(a)]
encoder += [Res(a, a), Attention(a), Res(a, a), norm(a), nn.SiLU(), nn.Conv2d(a, DIM, 3, padding=1)]
decoder = [nn.Conv2d(DIM, a, 3, padding=1), Res(a, a), Attention(a), Res(a, a)]
for n, multiple in enumerate(reversed(MULTIPLES)):
    decoder += [Res(a, multiple * WIDTH), Res(multiple * WIDTH, multiple * WIDTH)]
    a = multiple * WIDTH
    decoder += [Up(a, a, 3, padding=1)] if n < len(MULTIPLES) - 1 else []
decoder += [norm(a), nn.SiLU(), nn.Conv2d(a, 3, 3, padding=1)]

torch.manual_seed(0)
encoder, decoder, codes = nn.Sequential(*encoder).cuda(), nn.Sequential(*decoder).cuda(), nn.Embedding(CODES, DIM).cuda()
features = torchvision.models.vgg16(weights=None).features[:23].cuda().eval().requires_grad_(False)
judge = [nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True)]
for a, b, stride in ((64, 128, 2), (128, 256, 2), (256, 512, 1)):
    judge += [nn.Conv2d(a, b, 4, stride, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True)]
judge = nn.Sequential(*judge, nn.Conv2d(512, 1, 4, 1, 1)).cuda()
of_model = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codes.parameters()], 4.5e-6, betas=(0.5, 0.9))
of_judge = torch.optim.Adam(judge.parameters(), 4.5e-6, betas=(0.5, 0.9))


def perceptual(a, b):
    total = 0
    for number, layer in enumerate(features):
        a, b = layer(a), layer(b)
        if number in (3, 8, 15, 22):
            total = total + (F.normalize(a) - F.normalize(b)).square().sum(1, keepdim=True).mean((2, 3), keepdim=True)
    return total


for _ in range(3):
    images = torch.rand(BATCH, 3, 256, 256).cuda() * 2 - 1
    z = encoder(images).permute(0, 2, 3, 1)
    flat = z.reshape(-1, DIM)
    chosen = (flat.square().sum(1, keepdim=True) + codes.weight.square().sum(1) - 2 * flat @ codes.weight.t()).argmin(1)
    found = codes(chosen).view_as(z)
    commit = F.mse_loss(found.detach(), z) * 0.25 + F.mse_loss(found, z.detach())
    made = decoder((z + (found - z).detach()).permute(0, 3, 1, 2).contiguous())
    reconstruction = ((images - made).abs() + perceptual(images, made)).mean()
    fooled = -judge(made).mean()
    last = decoder[-1].weight
    of_reconstruction, = torch.autograd.grad(reconstruction, last, retain_graph=True)
    of_fooled, = torch.autograd.grad(fooled, last, retain_graph=True)
    weight = (of_reconstruction.norm() / (of_fooled.norm() + 1e-4)).clamp(0, 1e4).detach()
    loss = reconstruction + 0.8 * weight * fooled + commit
    of_model.zero_grad()
    loss.backward()
    of_model.step()
    judged = 0.5 * (F.relu(1 - judge(images)).mean() + F.relu(1 + judge(made.detach())).mean())
    of_judge.zero_grad()
    judged.backward()
    of_judge.step()
    print("loss", loss.item(), judged.item(), flush=True)
