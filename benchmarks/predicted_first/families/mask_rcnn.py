"""Instances: torchvision's Mask R-CNN in fp16, pictures of four sizes, a mask for every object, evaluation at the end."""

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.005, momentum=0.9, weight_decay=1e-4)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
SIZES = [(480, 640), (600, 800), (427, 640), (640, 480)]


def draw(height, width, objects=6):
    corner = torch.rand(objects, 2) * torch.tensor([width * 0.5, height * 0.5])
    boxes = torch.cat([corner, corner + 40 + torch.rand(objects, 2) * torch.tensor([width * 0.3, height * 0.3])], 1)
    masks = torch.zeros(objects, height, width, dtype=torch.uint8)
    for mask, (a, b, c, d) in zip(masks, boxes.long().tolist(), strict=True):
        mask[b:d, a:c] = 1
    return {"boxes": boxes.cuda(), "labels": torch.randint(1, 91, (objects,)).cuda(), "masks": masks.cuda()}


for _ in range(3):
    images = [torch.rand(3, *size).cuda() for size in SIZES]
    with torch.autocast("cuda", torch.float16):
        losses = model(images, [draw(*size) for size in SIZES])
    loss = sum(losses.values())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print("loss", loss.item(), flush=True)
model.eval()
with torch.no_grad():
    print("found", len(model([torch.rand(3, *SIZES[0]).cuda()])), flush=True)
