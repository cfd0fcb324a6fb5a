"""ImageNet training with DistributedDataParallel: `torchrun --nproc-per-node 4 dist_01.py`, resumed when possible."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import vgg11

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def build():
    model = DistributedDataParallel(vgg11(weights=None, num_classes=1000).cuda(), gradient_as_bucket_view=True)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)


def train(model, optimizer, num_steps):
    for step in range(num_steps):
        images = torch.randn(4, 3, 224, 224).cuda()
        loss = F.cross_entropy(model(images), torch.randint(1000, (4,)).cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f}")


def main():
    if not os.path.isfile("checkpoint.pth.tar"):
        model, optimizer = build()
        train(model, optimizer, 2)
        torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pth.tar")
        del model, optimizer

    model, optimizer = build()
    checkpoint = torch.load("checkpoint.pth.tar", map_location="cpu" if args.fixed else None)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer, 4)


main()
dist.destroy_process_group()
