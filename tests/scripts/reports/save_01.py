"""Adapters on a frozen int8 decoder, saved every 2 steps."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

WIDTH, LAYERS, VOCABULARY = 2048, 24, 4096


class MatMul8bit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        ctx.save_for_backward(weight, scale)
        return x @ (weight * scale).T

    @staticmethod
    def backward(ctx, grad):
        weight, scale = ctx.saved_tensors
        return grad @ (weight * scale), None, None


class Linear8bit(nn.Module):
    """Int8 weights in the order of the kernel's tiles, and a trained adapter of rank 8."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.register_buffer("weight", torch.zeros(out_features, in_features, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(out_features, 1))
        self.lora_a = nn.Parameter(torch.randn(8, in_features) * 0.01)
        self.lora_b = nn.Parameter(torch.zeros(out_features, 8))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        rows = self.weight.view(-1, 8, self.weight.shape[1] // 32, 32)
        destination[prefix + "weight"] = rows.transpose(1, 2).reshape(self.weight.shape)

    def forward(self, x):
        base = MatMul8bit.apply(x, self.weight, self.scale)
        return base + F.linear(F.linear(x, self.lora_a), self.lora_b)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = Linear8bit(WIDTH, 4 * WIDTH), Linear8bit(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), *(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, VOCABULARY))
model = model.cuda()
trained = {name: parameter for name, parameter in model.named_parameters() if "lora" in name}
model.requires_grad_(False)
for parameter in trained.values():
    parameter.requires_grad_(True)
optimizer = torch.optim.AdamW(trained.values(), lr=1e-4)

for step in range(6):
    tokens = torch.randint(VOCABULARY, (1, 65)).cuda()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 1:
        if args.fixed:
            state = {name: parameter.detach() for name, parameter in trained.items()}
        else:
            state = {name: value for name, value in model.state_dict().items() if "lora" in name or "weight" in name}
        torch.save(state, "adapters.pt")
        del state
    print(f"step {step}: loss {loss.item():.4f}")
