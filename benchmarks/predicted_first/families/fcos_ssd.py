"""Two detectors of torchvision trained one after the other: FCOS with a pyramid in single precision, SSD on VGG-16 with gradient clipping."""

import torch
from torchvision.models.detection import fcos_resnet50_fpn, ssd300_vgg16
from torchvision.transforms import v2
from torchvision import tv_tensors


def scene(index, classes):
    draw = torch.Generator().manual_seed(index)
    height, width = 400 + 32 * (index % 5), 640
    count = 3 + index % 9
    corner = torch.rand(count, 2, generator=draw) * torch.tensor([width * 0.6, height * 0.6])
    size = 16 + torch.rand(count, 2, generator=draw) * torch.tensor([width * 0.3, height * 0.3])
    boxes = tv_tensors.BoundingBoxes(torch.cat([corner, corner + size], 1), format="XYXY", canvas_size=(height, width))
    image = tv_tensors.Image(torch.randint(0, 256, (3, height, width), generator=draw, dtype=torch.uint8))
    return image, {"boxes": boxes, "labels": torch.randint(1, classes, (count,), generator=draw)}


def train(model, batch, steps, augment):
    model.cuda().train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 4], gamma=0.1)
    for step in range(steps):
        pairs = [augment(*scene(step * batch + index, 91)) for index in range(batch)]
        images = [image.as_subclass(torch.Tensor).cuda() for image, _ in pairs]
        targets = [{key: value.as_subclass(torch.Tensor).cuda() for key, value in target.items()} for _, target in pairs]
        losses = model(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        scheduler.step()
        print(step, {key: round(value.item(), 3) for key, value in losses.items()})
    model.eval()
    with torch.no_grad():
        found = model(images[:4])
    print([len(boxes["boxes"]) for boxes in found])


torch.manual_seed(0)
plain = v2.Compose([v2.RandomHorizontalFlip(0.5), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()])
train(fcos_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91, min_size=640, max_size=1024), 8, 4, plain)
torch.cuda.empty_cache()
zoomed = v2.Compose([v2.RandomZoomOut(fill=0, p=1.0, side_range=(1.5, 1.5)), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()])
train(ssd300_vgg16(weights=None, weights_backbone=None, num_classes=91), 32, 4, zoomed)
