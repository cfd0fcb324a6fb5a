"""SegFormer: a hierarchical vision transformer that labels every pixel, in fp32, with accumulated gradients."""

import torch
from transformers import SegformerConfig, SegformerForSemanticSegmentation, get_polynomial_decay_schedule_with_warmup

config = SegformerConfig(
    depths=[3, 4, 6, 3], hidden_sizes=[64, 128, 320, 512], decoder_hidden_size=768, num_labels=150, drop_path_rate=0.0
)
model = SegformerForSemanticSegmentation(config).cuda().train()
decayed = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=6e-5)
schedule = get_polynomial_decay_schedule_with_warmup(optimizer, 10, 1000)

for step in range(8):
    pixels = torch.randn(6, 3, 512, 512, device="cuda")
    labels = torch.randint(0, 150, (6, 512, 512), device="cuda")
    loss = model(pixel_values=pixels, labels=labels).loss
    (loss / 2).backward()
    if step % 2:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        print("loss", loss.item(), flush=True)
