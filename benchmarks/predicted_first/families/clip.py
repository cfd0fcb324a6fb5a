"""CLIP from transformers: images beside texts, a contrastive loss over the whole batch, fp16 with a scaler."""

import torch
from transformers import CLIPConfig, CLIPModel

config = CLIPConfig(
    text_config={"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12},
    vision_config={
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": 224,
        "patch_size": 14,
    },
    projection_dim=768,
)
model = CLIPModel(config).cuda().train()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.2)
scaler = torch.amp.GradScaler("cuda")

for _ in range(4):
    pixels = torch.randn(256, 3, 224, 224).pin_memory().to("cuda", non_blocking=True)
    texts = torch.randint(1, 49000, (256, 77))
    texts[:, -1] = 49407
    with torch.autocast("cuda", torch.float16):
        loss = model(input_ids=texts.cuda(), pixel_values=pixels, return_loss=True).loss
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print("loss", loss.item(), flush=True)
