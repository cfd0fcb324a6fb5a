"""The usual recipe for images: channels last, fp16 with a scaler, cuDNN's own choice of kernels, mixed labels, an evaluation."""

import torch
import torch.nn.functional as F
import torchvision

torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
model = torchvision.models.resnext50_32x4d(weights=None).cuda().to(memory_format=torch.channels_last)
decayed = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.SGD(
    [{"params": decayed, "weight_decay": 5e-5}, {"params": others, "weight_decay": 0.0}], 0.5, momentum=0.9, nesterov=True
)
scaler = torch.amp.GradScaler("cuda")

for _ in range(2):
    model.train()
    for _ in range(3):
        images = torch.randn(96, 3, 224, 224).cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = F.one_hot(torch.randint(0, 1000, (96,)), 1000).float().cuda()
        images = images.lerp(images.flip(0), 0.2)
        labels = labels.lerp(labels.flip(0), 0.2)
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.inference_mode(), torch.autocast("cuda", torch.float16):
        correct = 0
        for _ in range(2):
            images = torch.randn(128, 3, 224, 224).cuda().to(memory_format=torch.channels_last)
            correct += (model(images).argmax(1) == torch.randint(0, 1000, (128,)).cuda()).sum()
    print("loss", loss.item(), correct.item(), flush=True)
