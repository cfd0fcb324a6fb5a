"""A masked autoencoder over pictures: three quarters of the patches dropped by argsort and gather, bf16, accumulated, a schedule."""

import torch
from transformers import ViTMAEConfig, ViTMAEForPreTraining

torch.manual_seed(0)
model = ViTMAEForPreTraining(ViTMAEConfig(norm_pix_loss=True)).cuda()
decayed = [p for n, p in model.named_parameters() if p.ndim > 1]
others = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], 1.5e-4, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 40))

for step in range(8):
    images = torch.randn(96, 3, 224, 224).cuda(non_blocking=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(pixel_values=images).loss
    (loss / 2).backward()
    if step % 2:
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        print("loss", loss.item(), flush=True)
