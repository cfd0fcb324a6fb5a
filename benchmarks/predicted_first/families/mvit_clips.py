"""torchvision's video reference: MViT v2, fp16, clips with three views, gradient accumulation, then S3D on the same clips."""

import torch
from torch import nn
from torchvision.models.video import mvit_v2_s, s3d


def batch(size):
    frames = torch.randint(0, 256, (size, 16, 3, 224, 224), dtype=torch.uint8)
    video = frames.cuda(non_blocking=True).float().div_(255).permute(0, 2, 1, 3, 4)
    return (video - 0.45) / 0.225, torch.randint(0, 400, (size,)).cuda()


def train(model, size, accumulate, lr):
    model = model.cuda()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05)
    main = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, main], milestones=[4])
    scaler = torch.cuda.amp.GradScaler()
    model.train()
    for step in range(6):
        video, target = batch(size)
        with torch.cuda.amp.autocast():
            output = model(video)
            loss = criterion(output, target) / accumulate
        scaler.scale(loss).backward()
        if (step + 1) % accumulate:
            continue
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scheduler.step()
        print(f"loss {loss.item() * accumulate:.3f} scale {scaler.get_scale():.0f}")
    model.eval()
    with torch.inference_mode():
        views, target = batch(3 * size)
        output = model(views).softmax(1).view(size, 3, -1).mean(1)
        print(output.topk(5).indices[0].tolist())


train(mvit_v2_s(weights=None), 8, 2, 1e-4)
train(s3d(weights=None), 12, 1, 1e-3)
