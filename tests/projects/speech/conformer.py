"""A conformer encoder with a CTC head."""

import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Sequential):
    def __init__(self, dim, dropout):
        super().__init__(
            nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(dropout), nn.Linear(4 * dim, dim)
        )


class ConvModule(nn.Module):
    def __init__(self, dim, kernel=15):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Conv1d(dim, 2 * dim, 1)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.batch_norm = nn.BatchNorm1d(dim)
        self.out = nn.Conv1d(dim, dim, 1)

    def forward(self, x, padding):
        x = self.norm(x).masked_fill(padding[:, :, None], 0.0).transpose(1, 2)
        x = F.glu(self.gate(x), dim=1)
        return self.out(F.silu(self.batch_norm(self.depthwise(x)))).transpose(1, 2)


class ConformerBlock(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.ff1 = FeedForward(dim, dropout)
        self.attn_norm = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout, batch_first=True)
        self.conv = ConvModule(dim)
        self.ff2 = FeedForward(dim, dropout)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, padding):
        x = x + 0.5 * self.ff1(x)
        h = self.attn_norm(x)
        x = x + self.attn(h, h, h, key_padding_mask=padding, need_weights=False)[0]
        x = x + self.conv(x, padding)
        return self.norm(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    """Features (batch, frames, num_mels) to log probabilities (batch, frames / 4, vocab) and their lengths."""

    def __init__(self, vocab_size, num_mels=80, dim=256, heads=4, layers=4, dropout=0.1):
        super().__init__()
        self.subsample = nn.Sequential(
            nn.Conv2d(1, dim // 4, 3, stride=2), nn.ReLU(), nn.Conv2d(dim // 4, dim // 4, 3, stride=2), nn.ReLU()
        )
        self.project = nn.Linear(dim // 4 * (((num_mels - 1) // 2 - 1) // 2), dim)
        self.blocks = nn.ModuleList(ConformerBlock(dim, heads, dropout) for _ in range(layers))
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, mel, lengths):
        x = self.subsample(mel.unsqueeze(1))
        lengths = ((lengths - 1) // 2 - 1) // 2
        x = self.project(x.transpose(1, 2).flatten(2))
        padding = torch.arange(x.shape[1], device=x.device)[None] >= lengths[:, None]
        for block in self.blocks:
            x = block(x, padding)
        return self.head(x).log_softmax(-1), lengths
