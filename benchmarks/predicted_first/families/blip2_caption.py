"""BLIP-2: a frozen ViT and a frozen OPT in half, a Q-Former and a projection trained between them, captions padded, texts generated."""

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import (
    Blip2Config, Blip2ForConditionalGeneration, Blip2QFormerConfig, Blip2VisionConfig, OPTConfig, get_cosine_schedule_with_warmup,
)

QUERIES, IMAGE, PAD = 32, 50265, 1


class Captions(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        length = 10 + index % 30
        text = torch.cat([torch.full((QUERIES,), IMAGE), torch.tensor([2]), torch.randint(4, 50000, (length,)), torch.full((40 - length,), PAD)])
        labels = text.masked_fill((text == IMAGE) | (text == PAD), -100)
        pixels = torch.randn(3, 224, 224)
        return {"pixel_values": pixels, "input_ids": text, "attention_mask": (text != PAD).long(), "labels": labels}


torch.manual_seed(0)
config = Blip2Config(
    vision_config=Blip2VisionConfig(hidden_size=1408, num_hidden_layers=24, num_attention_heads=16, intermediate_size=6144),
    qformer_config=Blip2QFormerConfig(vocab_size=30523, encoder_hidden_size=1408),
    text_config=OPTConfig(vocab_size=50304, hidden_size=2048, num_hidden_layers=16, ffn_dim=8192, num_attention_heads=32, word_embed_proj_dim=2048),
    num_query_tokens=QUERIES, image_token_index=IMAGE,
)
model = Blip2ForConditionalGeneration(config)
model.vision_model.half().requires_grad_(False)
model.language_model.half().requires_grad_(False)
model = model.cuda()
model.vision_model.eval()
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
print(f"{sum(p.numel() for p in trained) / 1e6:.0f} of {sum(p.numel() for p in model.parameters()) / 1e6:.0f} million trained")
decay = [parameter for parameter in trained if parameter.ndim > 1]
plain = [parameter for parameter in trained if parameter.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}], lr=1e-4, betas=(0.9, 0.98))
scheduler = get_cosine_schedule_with_warmup(optimizer, 1, 10)
scaler = torch.amp.GradScaler("cuda")
loader = DataLoader(Captions(), batch_size=16, shuffle=True, num_workers=2, pin_memory=True)
model.train()
model.vision_model.eval()
for step, batch in enumerate(loader):
    batch = {key: value.cuda(non_blocking=True) for key, value in batch.items()}
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
prompt = batch["input_ids"][:, : QUERIES + 1]
with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
    texts = model.generate(
        pixel_values=batch["pixel_values"], input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, min_new_tokens=12,
        do_sample=False,
    )
print(texts.shape)
