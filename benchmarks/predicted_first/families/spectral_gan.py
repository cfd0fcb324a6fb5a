"""Classes of pictures from noise (BigGAN): spectral norms, conditional norms, attention, orthogonal weights, an average of weights."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

BATCH, CH, LATENT, CLASSES = 32, 64, 120, 1000


def conv(a, b, kernel=3):
    return spectral_norm(nn.Conv2d(a, b, kernel, padding=kernel // 2))


class Conditional(nn.Module):
    def __init__(self, width, given):
        super().__init__()
        self.norm = nn.BatchNorm2d(width, affine=False)
        self.gain, self.bias = (spectral_norm(nn.Linear(given, width, bias=False)) for _ in range(2))

    def forward(self, x, y):
        return self.norm(x) * (1 + self.gain(y))[..., None, None] + self.bias(y)[..., None, None]


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = conv(width, width // 8, 1), conv(width, width // 8, 1), conv(width, width // 2, 1)
        self.out, self.gamma = conv(width // 2, width, 1), nn.Parameter(torch.zeros(()))

    def forward(self, x):
        q, k, v = self.q(x).flatten(2), F.max_pool2d(self.k(x), 2).flatten(2), F.max_pool2d(self.v(x), 2).flatten(2)
        weights = torch.bmm(q.transpose(1, 2), k).softmax(-1)
        return x + self.gamma * self.out(torch.bmm(v, weights.transpose(1, 2)).view(len(x), -1, *x.shape[2:]))


class Up(nn.Module):
    def __init__(self, a, b, given):
        super().__init__()
        self.one, self.two, self.skip = conv(a, b), conv(b, b), conv(a, b, 1)
        self.a, self.b = Conditional(a, given), Conditional(b, given)

    def forward(self, x, y):
        h = self.one(F.interpolate(F.relu(self.a(x, y)), scale_factor=2))
        return self.two(F.relu(self.b(h, y))) + self.skip(F.interpolate(x, scale_factor=2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(CLASSES, 128)
        self.start = spectral_norm(nn.Linear(20, 16 * 16 * CH))
        widths = (16 * CH, 16 * CH, 8 * CH, 4 * CH, 2 * CH, CH)
        self.blocks = nn.ModuleList(Up(a, b, 148) for a, b in zip(widths[:-1], widths[1:], strict=True))
        self.attention, self.norm, self.out = Attention(2 * CH), nn.BatchNorm2d(CH), conv(CH, 3)

    def forward(self, z, labels):
        first, *parts = z.split(20, 1)
        x, y = self.start(first).view(-1, 16 * CH, 4, 4), self.shared(labels)
        for number, (block, part) in enumerate(zip(self.blocks, parts, strict=True)):
            x = block(x, torch.cat([y, part], 1))
            x = self.attention(x) if number == 3 else x
        return self.out(F.relu(self.norm(x))).tanh()


class Down(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.one, self.two, self.skip = conv(a, b), conv(b, b), conv(a, b, 1)

    def forward(self, x):
        return F.avg_pool2d(self.two(F.relu(self.one(F.relu(x)))), 2) + F.avg_pool2d(self.skip(x), 2)


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (3, CH, 2 * CH, 4 * CH, 8 * CH, 16 * CH)
        blocks = [Down(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True)]
        self.body = nn.Sequential(blocks[0], Attention(CH), *blocks[1:])
        self.last, self.kinds = spectral_norm(nn.Linear(16 * CH, 1)), spectral_norm(nn.Embedding(CLASSES, 16 * CH))

    def forward(self, x, labels):
        h = F.relu(self.body(x)).sum((2, 3))
        return self.last(h) + (self.kinds(labels) * h).sum(1, keepdim=True)


torch.manual_seed(0)
generator, judge = Generator(), Judge()
for module in (*generator.modules(), *judge.modules()):
    if isinstance(module, nn.Linear | nn.Conv2d):
        nn.init.orthogonal_(module.parametrizations.weight.original)
generator, judge = generator.cuda(), judge.cuda()
average = copy.deepcopy(generator).eval().requires_grad_(False)
of_generator = torch.optim.Adam(generator.parameters(), 5e-5, betas=(0.0, 0.999), eps=1e-6)
of_judge = torch.optim.Adam(judge.parameters(), 2e-4, betas=(0.0, 0.999), eps=1e-6)
for _ in range(3):
    for _ in range(2):
        real, labels = torch.rand(BATCH, 3, 128, 128).cuda() * 2 - 1, torch.randint(0, CLASSES, (BATCH,)).cuda()
        with torch.no_grad():
            fake = generator(torch.randn(BATCH, LATENT, device="cuda"), labels)
        both = judge(torch.cat([fake, real]), torch.cat([labels, labels]))
        loss = F.relu(1 + both[:BATCH]).mean() + F.relu(1 - both[BATCH:]).mean()
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
    judge.requires_grad_(False)
    fooled = -judge(generator(torch.randn(BATCH, LATENT, device="cuda"), labels), labels).mean()
    of_generator.zero_grad()
    fooled.backward()
    of_generator.step()
    judge.requires_grad_(True)
    with torch.no_grad():
        for a, b in zip(average.state_dict().values(), generator.state_dict().values(), strict=True):
            a.copy_(a * 0.999 + b * 0.001 if a.is_floating_point() else b)
    print("loss", loss.item(), fooled.item(), flush=True)
with torch.no_grad():
    print("mean", average(torch.randn(4 * BATCH, LATENT, device="cuda"), torch.arange(4 * BATCH, device="cuda")).mean().item())
