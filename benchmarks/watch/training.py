"""Two trainings: one in which the card is the bottleneck, one in which Python is."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """A block of a transformer, causal."""

    def __init__(self, width: int, heads: int) -> None:
        """Of `width` channels."""
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """From `[batch, length, width]` to the same."""
        batch, length, width = x.shape
        qkv = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*qkv, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


def transformer(device: str, *, width: int, layers: int, batch: int, length: int) -> Callable[[], Tensor]:
    """One step of training in bfloat16 on tokens, as a function that returns the loss."""
    vocabulary = 50_257
    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        *(Block(width, width // 64) for _ in range(layers)),
        nn.LayerNorm(width),
        nn.Linear(width, vocabulary, bias=False),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> Tensor:
        tokens = torch.randint(vocabulary, (batch, length), device=device)
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def card_bound(device: str) -> Callable[[], Tensor]:
    """GPT-2 (124M) with 16 sequences of 1,024 tokens."""
    return transformer(device, width=768, layers=12, batch=16, length=1024)


def host_bound(device: str) -> Callable[[], Tensor]:
    """The same layers, so small that the card waits for Python."""
    return transformer(device, width=64, layers=12, batch=2, length=16)


TRAININGS = {"the card is the bottleneck": card_bound, "Python is the bottleneck": host_bound}
