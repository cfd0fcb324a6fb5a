"""A ViT of timm with DistributedDataParallel: `torchrun --nproc-per-node 2 dist_02.py`."""

import argparse
import os

import timm
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

model = timm.create_model("vit_base_patch32_224", pretrained=False)
model = DistributedDataParallel(model.cuda(), gradient_as_bucket_view=args.fixed)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)

for step in range(5):
    images = torch.randn(4, 3, 224, 224).cuda()
    loss = F.cross_entropy(model(images), torch.randint(1000, (4,)).cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
dist.destroy_process_group()
