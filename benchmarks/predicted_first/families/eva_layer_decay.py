"""timm's fine-tuning recipe: EVA-02, layer decay, mixup and cutmix, checkpoints, an average of the weights, bf16, accumulation."""

from functools import partial

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3, random_seed

random_seed(42)
device = torch.device("cuda")
model = timm.create_model("eva02_base_patch14_448", img_size=336, num_classes=1000, drop_path_rate=0.1)
model.set_grad_checkpointing(enable=True)
model.to(device=device)
optimizer = create_optimizer_v2(model, opt="adamw", lr=5e-5, weight_decay=0.05, layer_decay=0.75, eps=1e-6)
print(len(optimizer.param_groups), "groups")
model_ema = ModelEmaV3(model, decay=0.9998, use_warmup=True)
amp_autocast = partial(torch.autocast, device_type=device.type, dtype=torch.bfloat16)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, prob=1.0, switch_prob=0.5, mode="batch", label_smoothing=0.1, num_classes=1000)
criterion = SoftTargetCrossEntropy().to(device)
scheduler, _ = create_scheduler_v2(optimizer, sched="cosine", num_epochs=10, warmup_epochs=2, updates_per_epoch=4)
accumulate, updates = 2, 0
model.train()
for batch in range(8):
    images = torch.randn(24, 3, 336, 336).to(device)
    target = torch.randint(0, 1000, (24,), device=device)
    images, target = mixup(images, target)
    need_update = (batch + 1) % accumulate == 0
    with amp_autocast():
        output = model(images)
        loss = criterion(output, target) / accumulate
    loss.backward()
    if not need_update:
        continue
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad()
    updates += 1
    model_ema.update(model, step=updates)
    torch.cuda.synchronize()
    scheduler.step_update(num_updates=updates, metric=loss.item())
    print(f"update {updates} loss {loss.item() * accumulate:.4f} lr {optimizer.param_groups[-1]['lr']:.2e}")
model_ema.eval()
with torch.inference_mode(), amp_autocast():
    for _ in range(2):
        output = model_ema(torch.randn(48, 3, 336, 336).to(device))
        print(output.argmax(1).float().mean().item())
