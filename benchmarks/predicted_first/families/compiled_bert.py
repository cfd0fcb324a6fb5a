"""transformers' BERT, compiled, masked words, fp16 with a scaler, dropout."""

import torch
from transformers import BertConfig, BertForMaskedLM

BATCH, LENGTH = 96, 512

torch.manual_seed(0)
model = BertForMaskedLM(BertConfig(num_hidden_layers=2)).cuda().train()
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
scaler = torch.amp.GradScaler()
for _ in range(4):
    ids = torch.randint(0, 30000, (BATCH, LENGTH), device="cuda")
    labels = torch.where(torch.rand(BATCH, LENGTH, device="cuda") < 0.15, ids, -100)
    with torch.autocast("cuda", torch.float16):
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
