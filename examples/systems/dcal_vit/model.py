"""A vision transformer with dual cross-attention: global-local, and pair-wise as a regulariser in training."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A transformer block whose queries may attend to other tokens than their own; it returns its weights too."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )
        self.drop_weights, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor, others: Tensor | None = None, fused: bool = False) -> tuple[Tensor, Tensor | None]:
        """`x` (batch, tokens, width) attends to itself, and to `others` too where they are given."""
        q, k, v = self.split_heads(self.norm1(x))
        if others is not None:
            _, other_k, other_v = self.split_heads(self.norm1(others))
            k, v = torch.cat([k, other_k], 2), torch.cat([v, other_v], 2)
        mixed, weights = self.attend(q, k, v, fused)
        x = x + self.drop_output(self.proj(mixed.transpose(1, 2).flatten(2)))
        return x + self.mlp(self.norm2(x)), weights

    def split_heads(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, fused: bool = False) -> tuple[Tensor, Tensor | None]:
        if fused:
            rate = self.rate if self.training else 0.0
            return F.scaled_dot_product_attention(q, k, v, dropout_p=rate), None
        weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
        return self.drop_weights(weights) @ v, weights


class GlobalLocalBlock(Block):
    """Only the tokens that the class token looks at most, through all layers, ask; all others answer."""

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        q, k, v = self.split_heads(self.norm1(x))
        at_heads = chosen[:, None, :, None].expand(-1, self.heads, -1, q.shape[-1])
        mixed, _ = self.attend(q.gather(2, at_heads), k, v)
        x = x.gather(1, chosen[:, :, None].expand(-1, -1, x.shape[-1]))
        x = x + self.drop_output(self.proj(mixed.transpose(1, 2).flatten(2)))
        return x + self.mlp(self.norm2(x))


def rollout(maps: list[Tensor], num_chosen: int) -> Tensor:
    """Tokens that the class token attends to through all layers: `maps` are (batch, tokens, tokens) each."""
    joined = torch.eye(maps[0].shape[-1], device=maps[0].device).expand_as(maps[0])
    for weights in maps:
        with_residual = (weights.float() + torch.eye(weights.shape[-1], device=weights.device)) / 2
        joined = with_residual @ joined
    best = joined[:, 0, 1:].topk(num_chosen).indices + 1
    return torch.cat([torch.zeros_like(best[:, :1]), best], 1)


class DualCrossAttention(nn.Module):
    """Self-attention of an image and of its pair, and attention of the image over both, by the same blocks.

    `binding` is how blocks are checkpointed, if they are: "each" hands the block over, "loop" a function that looks the
    block up when it is called. With `fused`, attention whose weights nobody reads does not make them.
    """

    def __init__(
        self,
        image: int,
        width: int,
        depth: int,
        heads: int,
        classes: int,
        dropout: float,
        joined: bool = True,
        binding: str = "none",
        mean_maps: bool = False,
        detach_maps: bool = False,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.joined, self.binding, self.fused = joined, binding, fused
        self.mean_maps, self.detach_maps = mean_maps, detach_maps
        num_tokens = (image // 16) ** 2 + 1
        self.num_chosen = num_tokens // 10
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, num_tokens, width) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.last = GlobalLocalBlock(width, heads, dropout)
        self.norm, self.norm_local = nn.LayerNorm(width), nn.LayerNorm(width)
        self.head, self.head_local = nn.Linear(width, classes), nn.Linear(width, classes)
        self.balance = nn.Parameter(torch.zeros(3))
        self.attention_maps: list[Tensor] = []

    def embed(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first.expand(len(tokens), -1, -1), tokens], 1)
        return self.dropout(tokens + self.positions)

    def map_of(self, weights: Tensor) -> Tensor:
        """What is kept of the weights of one layer (batch, heads, tokens, tokens) for the rollout."""
        if self.mean_maps:
            return weights.detach().mean(1)
        return weights.detach() if self.detach_maps else weights

    def attend_to_self(self, block: Block, x: Tensor, pair: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both images through `block`; of the weights those of the first only."""
        if self.fused or not self.joined:
            x, weights = block(x)
            pair, _ = block(pair, fused=self.fused)
            return x, pair, self.map_of(weights)
        both, weights = block(torch.cat([x, pair]))
        return *both.chunk(2), self.map_of(weights[: len(x)])

    def encode(self, x: Tensor, pair: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        maps = []
        for block in self.blocks:
            if self.binding == "loop":
                x_next, pair_next, kept = checkpoint(
                    lambda a, b: self.attend_to_self(block, a, b), x, pair, use_reentrant=False
                )
                mixed, _ = checkpoint(lambda a, b: block(a, b), mixed, pair, use_reentrant=False)
            elif self.binding == "each":
                x_next, pair_next, kept = checkpoint(self.attend_to_self, block, x, pair, use_reentrant=False)
                mixed, _ = checkpoint(block, mixed, pair, fused=self.fused, use_reentrant=False)
            else:
                x_next, pair_next, kept = self.attend_to_self(block, x, pair)
                mixed, _ = block(mixed, pair, fused=self.fused)
            x, pair = x_next, pair_next
            maps.append(kept)
        return x, mixed, maps

    def forward(self, images: Tensor, pairs: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch of `images`, each with another one as its pair."""
        x, pair = self.embed(images), self.embed(pairs)
        x, mixed, self.attention_maps = self.encode(x, pair, x)
        with torch.no_grad():
            maps = [kept if self.mean_maps else kept.mean(1) for kept in self.attention_maps]
            chosen = rollout(maps, self.num_chosen)
        local = self.last(x, chosen)
        logits = self.head(self.norm(x[:, 0])), self.head(self.norm(mixed[:, 0]))
        logits = *logits, self.head_local(self.norm_local(local[:, 0]))
        losses = torch.stack([F.cross_entropy(each.float(), labels) for each in logits])
        return (losses * torch.exp(-self.balance) + self.balance).sum() / 2
