"""A compiled ResNet-50, channels last, bf16 autocast, an average of its weights."""

import torch
import torchvision
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

BATCH = 192

torch.manual_seed(0)
model = torchvision.models.resnet50(weights=None).cuda().to(memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
compiled = torch.compile(model)
for _ in range(4):
    pictures = torch.randn(BATCH, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (BATCH,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(compiled(pictures), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    average.update_parameters(model)
    print("loss", loss.item(), flush=True)
