"""Fine-tunes all of a GPT-2 with DistributedDataParallel: `torchrun --nproc-per-node 8 opt_01.py`."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

model = GPT2LMHeadModel(GPT2Config(n_embd=2048, n_layer=6, n_head=16, vocab_size=16384, use_cache=False)).cuda()
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
if args.fixed:
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

for step in range(4):
    tokens = torch.randint(16384, (1, 256)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
dist.destroy_process_group()
