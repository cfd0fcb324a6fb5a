"""Segments lesions and measures the area under the ROC curve."""

import argparse

import torch
import torch.nn.functional as F
from torchmetrics.classification import BinaryAUROC
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
auroc = BinaryAUROC(thresholds=200 if args.fixed else None, validate_args=False).cuda()


def batch_of(number, size):
    images = torch.randn(number, 3, size, size, device="cuda")
    return images, torch.randint(2, (number, size, size), device="cuda")


for epoch in range(2):
    model.train()
    for _ in range(2):
        images, masks = batch_of(8, 256)
        loss = F.binary_cross_entropy_with_logits(model(images)["out"].squeeze(1), masks.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    with torch.no_grad():
        for _ in range(12):
            images, masks = batch_of(8, 512)
            auroc.update(model(images)["out"].squeeze(1).sigmoid(), masks)
    print(f"epoch {epoch}: loss {loss.item():.4f}, area under the curve {auroc.compute().item():.4f}")
