"""Torchvision's RetinaNet on images of different sizes: anchors, focal loss, the backbone's first layers frozen."""

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.detection.retinanet_resnet50_fpn_v2(weights=None, weights_backbone=None, num_classes=91).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.01, momentum=0.9, weight_decay=1e-4)
SIZES = [(480, 640), (600, 800), (427, 640), (640, 480)]

for _ in range(4):
    images = [torch.rand(3, *size).cuda() for size in SIZES]
    targets = []
    for height, width in SIZES:
        corner = torch.rand(9, 2) * torch.tensor([width * 0.6, height * 0.6])
        boxes = torch.cat([corner, corner + 20 + torch.rand(9, 2) * torch.tensor([width * 0.3, height * 0.3])], 1)
        targets.append({"boxes": boxes.cuda(), "labels": torch.randint(1, 91, (9,)).cuda()})
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
