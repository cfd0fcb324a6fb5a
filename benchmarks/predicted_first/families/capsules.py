"""Capsules: votes of 2,048 parts for ten wholes, routed by agreement, a margin loss and a decoder that draws the picture again."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

BATCH, CLASSES, ROUTINGS = 128, 10, 3


def squash(inputs, axis=-1):
    norm = torch.norm(inputs, p=2, dim=axis, keepdim=True)
    scale = norm**2 / (1 + norm**2) / (norm + 1e-8)
    return scale * inputs


class DenseCapsule(nn.Module):
    def __init__(self, in_num_caps, in_dim_caps, out_num_caps, out_dim_caps, routings=3):
        super().__init__()
        self.in_num_caps, self.out_num_caps, self.routings = in_num_caps, out_num_caps, routings
        self.weight = nn.Parameter(0.01 * torch.randn(out_num_caps, in_num_caps, out_dim_caps, in_dim_caps))

    def forward(self, x):
        x_hat = torch.squeeze(torch.matmul(self.weight, x[:, None, :, :, None]), dim=-1)
        x_hat_detached = x_hat.detach()
        b = Variable(torch.zeros(x.size(0), self.out_num_caps, self.in_num_caps)).cuda()
        for i in range(self.routings):
            c = F.softmax(b, dim=1)
            if i == self.routings - 1:
                outputs = squash(torch.sum(c[:, :, :, None] * x_hat, dim=-2, keepdim=True))
            else:
                outputs = squash(torch.sum(c[:, :, :, None] * x_hat_detached, dim=-2, keepdim=True))
                b = b + torch.sum(outputs * x_hat_detached, dim=-1)
        return torch.squeeze(outputs, dim=-2)


class PrimaryCapsule(nn.Module):
    def __init__(self, in_channels, out_channels, dim_caps, kernel_size, stride):
        super().__init__()
        self.dim_caps = dim_caps
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=0)

    def forward(self, x):
        outputs = self.conv2d(x)
        return squash(outputs.view(x.size(0), -1, self.dim_caps))


class CapsuleNet(nn.Module):
    def __init__(self, size=(3, 32, 32)):
        super().__init__()
        self.size = size
        self.conv1 = nn.Conv2d(size[0], 256, kernel_size=9, stride=1, padding=0)
        self.primarycaps = PrimaryCapsule(256, 256, 8, kernel_size=9, stride=2)
        self.digitcaps = DenseCapsule(32 * 8 * 8, 8, CLASSES, 16, ROUTINGS)
        self.decoder = nn.Sequential(
            nn.Linear(16 * CLASSES, 512),
            nn.ReLU(inplace=True),
            nn.Linear(512, 1024),
            nn.ReLU(inplace=True),
            nn.Linear(1024, size[0] * size[1] * size[2]),
            nn.Sigmoid(),
        )
        self.relu = nn.ReLU()

    def forward(self, x, y=None):
        x = self.relu(self.conv1(x))
        x = self.primarycaps(x)
        x = self.digitcaps(x)
        length = x.norm(dim=-1)
        if y is None:
            index = length.max(dim=1)[1]
            y = Variable(torch.zeros(length.size()).scatter_(1, index.view(-1, 1).cpu().data, 1.0).cuda())
        reconstruction = self.decoder((x * y[:, :, None]).view(x.size(0), -1))
        return length, reconstruction.view(-1, *self.size)


def caps_loss(y_true, y_pred, x, x_recon, lam_recon):
    margin = y_true * torch.clamp(0.9 - y_pred, min=0.0) ** 2
    margin = margin + 0.5 * (1 - y_true) * torch.clamp(y_pred - 0.1, min=0.0) ** 2
    return margin.sum(dim=1).mean() + lam_recon * nn.MSELoss()(x_recon, x)


def test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    for x, y in loader:
        y = torch.zeros(y.size(0), CLASSES).scatter_(1, y.view(-1, 1), 1.0)
        with torch.no_grad():
            x, y = Variable(x.cuda()), Variable(y.cuda())
            y_pred, x_recon = model(x)
        test_loss += caps_loss(y, y_pred, x, x_recon, 0.392).data * x.size(0)
        correct += y_pred.data.max(1)[1].eq(y.data.max(1)[1]).cpu().sum()
    return test_loss.item() / len(loader.dataset), correct.item() / len(loader.dataset)


torch.manual_seed(0)
dataset = TensorDataset(torch.rand(3 * BATCH + 40, 3, 32, 32), torch.randint(0, CLASSES, (3 * BATCH + 40,)))
train_loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
test_loader = DataLoader(dataset, batch_size=2 * BATCH)
model = CapsuleNet().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
lr_decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
training_loss = 0.0
for i, (x, y) in enumerate(train_loader):
    model.train()
    y = torch.zeros(y.size(0), CLASSES).scatter_(1, y.view(-1, 1), 1.0)
    x, y = Variable(x.cuda()), Variable(y.cuda())
    optimizer.zero_grad()
    y_pred, x_recon = model(x, y)
    loss = caps_loss(y, y_pred, x, x_recon, 0.392)
    loss.backward()
    training_loss += loss.data * x.size(0)
    optimizer.step()
    print(i, loss.item(), flush=True)
lr_decay.step()
print("train", (training_loss / len(dataset)).item(), "test", test(model, test_loader))
