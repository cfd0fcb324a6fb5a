"""A detector with object queries: ResNet features, an encoder-decoder, and a matching on the host that decides the loss."""

import torch
import torch.nn.functional as F
import torchvision
from scipy.optimize import linear_sum_assignment
from torch import nn

NUM_CLASSES, NUM_QUERIES, BATCH = 91, 100, 8


class Detr(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        body = torchvision.models.resnet50(weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d)
        self.body = nn.Sequential(*list(body.children())[:-2])
        self.reduce = nn.Conv2d(2048, width, 1)
        self.transformer = nn.Transformer(width, 8, 6, 6, 2048, 0.1, batch_first=True)
        self.queries = nn.Embedding(NUM_QUERIES, width)
        self.rows, self.columns = nn.Embedding(50, width // 2), nn.Embedding(50, width // 2)
        self.classes, self.boxes = nn.Linear(width, NUM_CLASSES + 1), nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, images):
        x = self.reduce(self.body(images))
        b, _, h, w = x.shape
        rows = self.rows.weight[:h, None].expand(h, w, -1)
        columns = self.columns.weight[None, :w].expand(h, w, -1)
        tokens = x.flatten(2).transpose(1, 2) + torch.cat([rows, columns], -1).flatten(0, 1)
        found = self.transformer(tokens, self.queries.weight.expand(b, -1, -1))
        return self.classes(found), self.boxes(found).sigmoid()


def loss_of(logits, boxes, targets):
    total = 0
    for scores, found, (labels, wanted) in zip(logits, boxes, targets, strict=True):
        with torch.no_grad():
            cost = torch.cdist(found, wanted, p=1) - scores.softmax(-1)[:, labels]
            rows, columns = linear_sum_assignment(cost.cpu().numpy())
        rows, columns = torch.as_tensor(rows).cuda(), torch.as_tensor(columns).cuda()
        classes = torch.full((NUM_QUERIES,), NUM_CLASSES, device="cuda")
        classes[rows] = labels[columns]
        total = total + F.cross_entropy(scores, classes) + 5 * F.l1_loss(found[rows], wanted[columns])
    return total / len(targets)


torch.manual_seed(0)
model = Detr().cuda()
slow = [p for n, p in model.named_parameters() if n.startswith("body.")]
fast = [p for n, p in model.named_parameters() if not n.startswith("body.")]
optimizer = torch.optim.AdamW([{"params": slow, "lr": 1e-5}, {"params": fast}], lr=1e-4, weight_decay=1e-4)

for _ in range(4):
    images = torch.randn(BATCH, 3, 640, 800).cuda()
    targets = [(torch.randint(0, NUM_CLASSES, (12,)).cuda(), torch.rand(12, 4).cuda()) for _ in range(BATCH)]
    loss = loss_of(*model(images), targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print("loss", loss.item(), flush=True)
