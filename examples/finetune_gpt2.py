"""Fine-tune GPT-2 in half precision, the usual way: fp32 weights, fp16 autocast, AdamW."""

import argparse

import torch
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

SIZES = {
    "gpt2": {"n_layer": 12, "n_head": 12, "n_embd": 768},
    "gpt2-medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
    "gpt2-large": {"n_layer": 36, "n_head": 20, "n_embd": 1280},
}

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=SIZES, default="gpt2-medium")
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--seq", type=int, default=1024)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--lr", type=float, default=3e-5)
parser.add_argument("--output", default="finetuned")
args = parser.parse_args()

torch.manual_seed(0)
config = GPT2Config(**SIZES[args.model])
model = GPT2LMHeadModel(config).cuda().train()  # random weights, so that nothing is downloaded
tokens = torch.randint(config.vocab_size, (1024, args.seq))  # stands in for the tokens of your text
loader = DataLoader(TensorDataset(tokens), args.batch, shuffle=True, drop_last=True, pin_memory=True)

optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=100, num_training_steps=args.steps)
scaler = torch.amp.GradScaler("cuda")

step = 0
while step < args.steps:
    for (batch,) in loader:
        batch = batch.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(input_ids=batch, labels=batch).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        optimizer.zero_grad()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}")

model.save_pretrained(args.output)
