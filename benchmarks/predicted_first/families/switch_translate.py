"""Switch Transformers: one expert per token, jittered routers, Accelerate in bf16, gradients clipped, evaluated."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import SwitchTransformersConfig, SwitchTransformersForConditionalGeneration, get_scheduler

torch.manual_seed(0)
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
config = SwitchTransformersConfig(
    d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_decoder_layers=12, num_heads=12, num_experts=8, expert_capacity=64,
    num_sparse_encoder_layers=6, num_sparse_decoder_layers=6, decoder_start_token_id=0,
)
model = SwitchTransformersForConditionalGeneration(config)
data = TensorDataset(torch.randint(5, 32000, (96, 384)), torch.randint(5, 32000, (96, 192)))
train = DataLoader(data, batch_size=12, shuffle=True)
valid = DataLoader(data, batch_size=16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
scheduler = get_scheduler("polynomial", optimizer=optimizer, num_warmup_steps=1, num_training_steps=10)
model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
model.train()
for step, (source, target) in enumerate(train):
    with accelerator.accumulate(model):
        outputs = model(input_ids=source, labels=target)
        accelerator.backward(outputs.loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    accelerator.print(step, outputs.loss.item())
model.eval()
losses = []
for step, (source, target) in enumerate(valid):
    with torch.no_grad():
        outputs = model(input_ids=source, labels=target)
    losses.append(accelerator.gather_for_metrics(outputs.loss.repeat(len(source))))
    if step == 2:
        break
accelerator.print(torch.cat(losses).mean().item())
