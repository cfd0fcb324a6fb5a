"""Action recognition: R(2+1)D of torchvision on clips, channels last in three dimensions, bf16, evaluated after each epoch."""

import torch
import torch.nn.functional as F
import torchvision

torch.manual_seed(0)
model = torchvision.models.video.r2plus1d_18(weights=None, num_classes=400).cuda().to(memory_format=torch.channels_last_3d)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)


def clips(count):
    frames = torch.randn(count, 3, 16, 112, 112).cuda().to(memory_format=torch.channels_last_3d)
    return frames, torch.randint(0, 400, (count,)).cuda()


for _ in range(2):
    model.train()
    for _ in range(3):
        frames, labels = clips(16)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(frames), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        for _ in range(2):
            frames, labels = clips(32)
            right += (model(frames).argmax(1) == labels).sum()
    print("loss", loss.item(), "right", right.item(), flush=True)
