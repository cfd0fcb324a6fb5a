"""A student learns from a teacher on another card; `--width` is the teacher's."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=1024)
args = parser.parse_args()

student = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to("cuda:0")
teacher = nn.Sequential(nn.Linear(256, args.width), nn.ReLU(), nn.Linear(args.width, 256)).to("cuda:1").eval()
optimizer = torch.optim.AdamW(student.parameters())
for _ in range(10):
    x = torch.ones(64, 256)
    with torch.no_grad():
        target = teacher(x.to("cuda:1")).to("cuda:0")
    loss = (student(x.to("cuda:0")) - target).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
