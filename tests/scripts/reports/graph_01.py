"""A ResNet-18 on small images, trained and validated by one function."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = resnet18(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def images(number):
    return TensorDataset(torch.randn(number, 3, 128, 128), torch.randint(10, (number,)))


def run_epoch(loader, train):
    model.train(train)
    e_total = 0.0
    for x, y in loader:
        e_batch = criterion(model(x.cuda()), y.cuda())
        if train:
            optimizer.zero_grad()
            e_batch.backward()
            optimizer.step()
        if args.fixed:
            e_total += e_batch.item()
        else:
            e_total += e_batch
    return e_total / len(loader)


train_loader = DataLoader(images(128), batch_size=64, shuffle=True)
valid_loader = DataLoader(images(512), batch_size=64)
for epoch in range(3):
    e_train = run_epoch(train_loader, train=True)
    e_valid = run_epoch(valid_loader, train=False)
    print(f"epoch {epoch}: train {float(e_train):.4f} valid {float(e_valid):.4f}")
