"""ConvNeXt-S with mixup, bf16 autocast, an exponential moving average of the weights, clipping and a cosine schedule."""

import argparse
import copy

import torch
import torch.nn.functional as F
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=48)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
model = torchvision.models.convnext_small(weights=None, num_classes=200).to(device)
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(
        torch.randn(args.batch * args.steps, 3, 224, 224), torch.randint(0, 200, (args.batch * args.steps,))
    ),
    batch_size=args.batch,
    shuffle=True,
    pin_memory=True,
)
for images, labels in loader:
    images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
    order = torch.randperm(len(images), device=device)
    share = 0.7
    images = share * images + (1 - share) * images[order]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(images)
        loss = share * F.cross_entropy(logits, labels, label_smoothing=0.1) + (1 - share) * F.cross_entropy(
            logits, labels[order], label_smoothing=0.1
        )
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for averaged, current in zip(ema.parameters(), model.parameters(), strict=True):
            averaged.lerp_(current, 1e-4)
    print(f"loss {loss.item():.3f}", flush=True)
