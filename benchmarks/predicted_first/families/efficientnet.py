"""EfficientNet from timm: channels last, fp16 with a scaler, RMSprop, an average of the weights, label smoothing."""

import timm
import torch
import torch.nn.functional as F
from timm.utils import ModelEmaV3

model = timm.create_model("efficientnet_b3", num_classes=200, drop_rate=0.3)
model = model.to("cuda", memory_format=torch.channels_last).train()
average = ModelEmaV3(model, decay=0.999)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, momentum=0.9, weight_decay=1e-5)
scaler = torch.amp.GradScaler("cuda")

for _ in range(4):
    images = torch.randn(48, 3, 300, 300).to("cuda", memory_format=torch.channels_last)
    labels = torch.randint(0, 200, (48,)).to("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    average.update(model)
    print("loss", loss.item(), flush=True)
