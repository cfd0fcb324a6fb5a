"""A VGG-11 of torchvision teaches a ResNet-18 in one autocast context."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import resnet18, vgg11

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

teacher = vgg11(weights=None, num_classes=20).cuda().eval()
student = resnet18(weights=None, num_classes=20).cuda()
if args.fixed:
    teacher.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)

for step in range(4):
    images = torch.randn(32, 3, 224, 224, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16, enabled=not args.near_miss):
        with torch.no_grad():
            wanted = teacher(images).softmax(dim=-1)
        loss = F.cross_entropy(student(images), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
