"""A small network learns from a large one: labels and the large one's answers."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import resnet18, resnet34

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

student, teacher = resnet18(weights=None, num_classes=10).cuda(), resnet34(weights=None, num_classes=10).cuda()
both = [*student.parameters(), *teacher.parameters()]
optimizer = torch.optim.SGD(both if args.near_miss else student.parameters(), lr=0.01)

for step in range(4):
    images = torch.randn(64, 3, 128, 128, device="cuda")
    labels = torch.randint(10, (64,), device="cuda")
    with torch.set_grad_enabled(not args.fixed):
        answers = teacher(images)
    logits = student(images)
    if args.near_miss:
        loss = F.cross_entropy(logits, labels) + F.cross_entropy(answers, labels) + F.mse_loss(logits, answers)
    else:
        loss = F.cross_entropy(logits, labels) + F.mse_loss(logits, answers.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
