"""timm's vision transformer, compiled in place by `model.compile()`, label smoothing, bf16 autocast, SGD."""

import timm
import torch
from torch import nn

BATCH = 256

torch.manual_seed(0)
model = timm.create_model("vit_base_patch16_224", depth=4, num_classes=1000, drop_path_rate=0.1).cuda()
model.compile()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(4):
    pictures = torch.randn(BATCH, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (BATCH,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = criterion(model(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item(), flush=True)
