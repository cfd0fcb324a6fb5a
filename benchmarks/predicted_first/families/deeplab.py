"""Classes of pixels: torchvision's DeepLabV3 with an auxiliary head, fp16, hard examples mined, a confusion matrix kept."""

import torch
import torch.nn.functional as F
import torchvision

CLASSES = 19
torch.manual_seed(0)
model = torchvision.models.segmentation.deeplabv3_resnet50(
    weights=None, weights_backbone=None, num_classes=CLASSES, aux_loss=True
).cuda()
heads = [*model.classifier.parameters(), *model.aux_classifier.parameters()]
optimizer = torch.optim.SGD(
    [{"params": model.backbone.parameters()}, {"params": heads, "lr": 0.1}], 0.01, momentum=0.9, weight_decay=1e-4
)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 100, 0.9)
scaler = torch.amp.GradScaler("cuda")


def mined(logits, labels, fewest=100000):
    losses = F.cross_entropy(logits, labels, ignore_index=255, reduction="none").flatten()
    return losses.topk(max(fewest, losses.numel() // 16))[0].mean()


confusion = torch.zeros(CLASSES, CLASSES, dtype=torch.long, device="cuda")
for _ in range(3):
    images, labels = torch.randn(8, 3, 513, 513).cuda(), torch.randint(0, CLASSES, (8, 513, 513)).cuda()
    labels[:, :9] = 255
    with torch.autocast("cuda", torch.float16):
        out = model(images)
        loss = mined(out["out"], labels) + 0.4 * mined(out["aux"], labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    schedule.step()
    with torch.no_grad():
        keep = labels != 255
        pairs = labels[keep] * CLASSES + out["out"].argmax(1)[keep]
        confusion += torch.bincount(pairs, minlength=CLASSES**2).view(CLASSES, CLASSES)
    print("loss", loss.item(), flush=True)
print("mean IoU", (confusion.diag() / (confusion.sum(0) + confusion.sum(1) - confusion.diag())).mean().item(), flush=True)
