"""Fine-tune a local checkpoint, as people write it."""

import sys
import time

import torch
from transformers import AutoModelForCausalLM

started = time.perf_counter()
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16, device_map="cuda")
print(f"loaded in {time.perf_counter() - started:.1f} s", flush=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for _ in range(3):
    tokens = torch.randint(model.config.vocab_size, (1, 512)).cuda()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
