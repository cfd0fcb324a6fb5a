"""A student of many crops and a teacher that is its average: small and large pictures in one step, a head of 65,536, sharpened."""

import copy

import timm
import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self, width, out=65536):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 256))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(256, out, bias=False))
        self.last.parametrizations.weight.original0.data.fill_(1)
        self.last.parametrizations.weight.original0.requires_grad_(False)

    def forward(self, x):
        return self.last(F.normalize(self.body(x), dim=-1))


class Crops(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.backbone = timm.create_model("vit_small_patch16_224", num_classes=0, drop_path_rate=drop, dynamic_img_size=True)
        self.head = Head(self.backbone.num_features)

    def forward(self, crops):
        sizes = torch.unique_consecutive(torch.tensor([crop.shape[-1] for crop in crops]), return_counts=True)[1].cumsum(0)
        start, made = 0, []
        for end in sizes.tolist():
            made.append(self.backbone(torch.cat(crops[start:end])))
            start = end
        return self.head(torch.cat(made))


torch.manual_seed(0)
student = Crops(0.0).cuda()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in student.parameters() if p.requires_grad], 5e-4, weight_decay=0.04)
scaler = torch.amp.GradScaler("cuda")
centre = torch.zeros(1, 65536, device="cuda")

for _ in range(3):
    crops = [torch.randn(24, 3, 224, 224).cuda() for _ in range(2)] + [torch.randn(24, 3, 96, 96).cuda() for _ in range(6)]
    with torch.autocast("cuda", torch.float16):
        with torch.no_grad():
            of_teacher = teacher(crops[:2])
        of_student = student(crops) / 0.1
        targets = F.softmax((of_teacher - centre) / 0.04, dim=-1).detach().chunk(2)
        loss, terms = 0, 0
        for first, target in enumerate(targets):
            for second, logits in enumerate(of_student.chunk(8)):
                if first != second:
                    loss = loss + torch.sum(-target * F.log_softmax(logits, dim=-1), dim=-1).mean()
                    terms += 1
        loss = loss / terms
    with torch.no_grad():
        centre = centre * 0.9 + of_teacher.float().mean(0, keepdim=True) * 0.1
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for parameter in student.parameters():
        if parameter.grad is not None:
            norm = parameter.grad.norm(2)
            parameter.grad.mul_((3.0 / (norm + 1e-6)).clamp(max=1.0))
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        for kept, value in zip(teacher.parameters(), student.parameters(), strict=True):
            kept.mul_(0.996).add_(value, alpha=0.004)
    print("loss", loss.item(), flush=True)
