"""Trains LoRA adapters on a decoder of its own, with a checkpoint around each layer."""

import argparse

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Attention(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, past):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.o_proj(out.transpose(1, 2).flatten(2)), (k, v)


class Layer(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, num_heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        attended, present = self.attention(self.norm1(x), past)
        x = x + attended
        return x + self.mlp(self.norm2(x)), present


class Decoder(nn.Module):
    def __init__(self, vocab_size=8192, width=1024, num_layers=12, num_heads=16):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(Layer(width, num_heads) for _ in range(num_layers))
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, tokens, past_key_values=None, use_cache=True):
        x = self.embed(tokens)
        x.requires_grad_(self.training)
        presents = []
        for index, layer in enumerate(self.layers):
            past = past_key_values[index] if past_key_values else None
            if self.training:
                x, present = checkpoint(layer, x, past, use_reentrant=False)
            else:
                x, present = layer(x, past)
            if use_cache:
                presents.append(present)
        return self.head(x), presents


model = get_peft_model(Decoder(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"])).cuda()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)


def training_step(tokens):
    logits, _past = model(tokens[:, :-1], use_cache=not args.fixed)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


for step in range(6):
    loss = training_step(torch.randint(8192, (4, 2049)).cuda())
    print(f"step {step}: loss {loss:.4f}")
