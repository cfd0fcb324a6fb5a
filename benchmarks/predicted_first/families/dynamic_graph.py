"""Point clouds whose graph is drawn again at every layer: nearest neighbours by topk, edges gathered, parts segmented."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, POINTS, NEIGHBOURS, PARTS = 8, 2048, 20, 50


def edges(x):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    square = x.square().sum(1, keepdim=True)
    nearest = (-square - inner - square.transpose(2, 1)).topk(NEIGHBOURS, dim=-1)[1]
    flat = (nearest + torch.arange(len(x), device=x.device)[:, None, None] * POINTS).view(-1)
    rows = x.transpose(2, 1).contiguous().view(len(x) * POINTS, -1)
    gathered = rows[flat].view(len(x), POINTS, NEIGHBOURS, -1)
    centre = rows.view(len(x), POINTS, 1, -1).repeat(1, 1, NEIGHBOURS, 1)
    return torch.cat((gathered - centre, centre), 3).permute(0, 3, 1, 2)


def conv2(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))


def conv1(a, b):
    return nn.Sequential(nn.Conv1d(a, b, 1, bias=False), nn.BatchNorm1d(b), nn.LeakyReLU(0.2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Sequential(conv2(6, 64), conv2(64, 64)), nn.Sequential(conv2(128, 64), conv2(64, 64))
        self.three, self.mix, self.kind = conv2(128, 64), conv1(192, 1024), conv1(16, 64)
        self.head = nn.Sequential(conv1(1280, 256), nn.Dropout(), conv1(256, 256), nn.Dropout(), conv1(256, 128), nn.Conv1d(128, PARTS, 1))

    def forward(self, x, kind):
        a = self.one(edges(x)).max(-1)[0]
        b = self.two(edges(a)).max(-1)[0]
        c = self.three(edges(b)).max(-1)[0]
        whole = self.mix(torch.cat((a, b, c), 1)).max(-1, keepdim=True)[0]
        whole = torch.cat((whole, self.kind(kind[:, :, None])), 1).repeat(1, 1, POINTS)
        return self.head(torch.cat((whole, a, b, c), 1))


torch.manual_seed(0)
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200, eta_min=1e-3)
for _ in range(3):
    points, labels = torch.randn(BATCH, 3, POINTS).cuda(), torch.randint(0, PARTS, (BATCH, POINTS)).cuda()
    kind = F.one_hot(torch.randint(0, 16, (BATCH,)), 16).float().cuda()
    scores = model(points, kind).permute(0, 2, 1).contiguous()
    loss = F.cross_entropy(scores.view(-1, PARTS), labels.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shared = [((scores.argmax(2) == part) & (labels == part)).sum() for part in range(4)]
    print("loss", loss.item(), int(sum(shared)), flush=True)
schedule.step()
