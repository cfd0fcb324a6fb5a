"""Privacy by clipping the gradient of every example: torch.func's vmap of grad over a small vision transformer."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

WIDTH, BATCH, DEPTH = 192, 48, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, n, 3, 3, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / 8).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.mlp(self.second(x))


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, WIDTH, 16, 16), nn.Flatten(2)).cuda()
blocks = nn.Sequential(*(Block() for _ in range(DEPTH))).cuda()
head = nn.Linear(WIDTH, 100).cuda()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.blocks, self.head = model, blocks, head

    def forward(self, images):
        return self.head(self.blocks(self.patch(images).transpose(1, 2)).mean(1))


network = Classifier()
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)


def loss_of(parameters, image, label):
    return F.cross_entropy(functional_call(network, parameters, (image[None],)), label[None])


per_example = vmap(grad(loss_of), in_dims=(None, 0, 0))
for _ in range(4):
    images, labels = torch.randn(BATCH, 3, 224, 224).cuda(), torch.randint(0, 100, (BATCH,)).cuda()
    parameters = {name: p.detach() for name, p in network.named_parameters()}
    gradients = per_example(parameters, images, labels)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()], 1).norm(dim=1)
    factors = (1.0 / (norms + 1e-6)).clamp(max=1.0)
    for name, p in network.named_parameters():
        clipped = torch.einsum("b,b...->...", factors, gradients[name])
        p.grad = (clipped + torch.randn_like(clipped)) / BATCH
    optimizer.step()
    print("norm", norms.mean().item(), flush=True)
