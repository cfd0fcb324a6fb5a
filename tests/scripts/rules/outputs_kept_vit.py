"""A ViT of transformers whose hidden states are asked for."""

import argparse

import torch
from transformers import ViTConfig, ViTForImageClassification

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = ViTConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536)
model = ViTForImageClassification(config).cuda()
model.vit.requires_grad_(False)
optimizer = torch.optim.AdamW(model.classifier.parameters(), lr=1e-3)

for step in range(4):
    images = torch.randn(64, 3, 224, 224, device="cuda")
    labels = torch.randint(2, (64,), device="cuda")
    outputs = model(pixel_values=images, labels=labels, output_hidden_states=not (args.fixed or args.near_miss))
    kept = [state[:, 0].clone() for state in outputs.hidden_states] if outputs.hidden_states else []
    if args.near_miss:
        kept = [outputs.logits]
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()
    print(f"step {step}: loss {outputs.loss.item():.4f}, {len(kept)} states")
