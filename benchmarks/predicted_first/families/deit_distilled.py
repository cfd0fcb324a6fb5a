"""DeiT's recipe on EfficientFormer: a RegNet as teacher, hard labels of it, random erasing on the card, LAMB, bf16."""

import timm
import torch
import torch.nn.functional as F
from timm.data import Mixup
from timm.data.random_erasing import RandomErasing
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3


class DistillationLoss(torch.nn.Module):
    def __init__(self, base_criterion, teacher_model, alpha):
        super().__init__()
        self.base_criterion, self.teacher_model, self.alpha = base_criterion, teacher_model, alpha

    def forward(self, inputs, outputs, labels):
        outputs, outputs_kd = outputs if isinstance(outputs, tuple) else (outputs, outputs)
        base_loss = self.base_criterion(outputs, labels)
        with torch.no_grad():
            teacher_outputs = self.teacher_model(inputs)
        distillation_loss = F.cross_entropy(outputs_kd, teacher_outputs.argmax(dim=1))
        return base_loss * (1 - self.alpha) + distillation_loss * self.alpha


model = timm.create_model("efficientformer_l3", num_classes=1000, drop_path_rate=0.1).cuda()
if hasattr(model, "set_distilled_training"):
    model.set_distilled_training(True)
teacher = timm.create_model("regnety_160", num_classes=1000).cuda().eval()
optimizer = create_optimizer_v2(model, opt="lamb", lr=2e-3, weight_decay=0.025, filter_bias_and_bn=True)
scheduler = CosineLRScheduler(optimizer, t_initial=100, warmup_t=5, warmup_lr_init=1e-6, cycle_decay=0.1)
ema = ModelEmaV3(model, decay=0.99996, device="cpu")
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, prob=1.0, label_smoothing=0.1, num_classes=1000)
erase = RandomErasing(probability=0.25, mode="pixel", device="cuda")
criterion = DistillationLoss(SoftTargetCrossEntropy(), teacher, alpha=0.5)
for step in range(5):
    model.train()
    samples = erase(torch.randn(96, 3, 224, 224).cuda(non_blocking=True))
    targets = torch.randint(0, 1000, (96,)).cuda(non_blocking=True)
    samples, targets = mixup(samples, targets)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        outputs = model(samples)
        loss = criterion(samples, outputs, targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    torch.cuda.synchronize()
    ema.update(model)
    print(f"{step} loss {loss.item():.3f}")
scheduler.step(1)
model.eval()
with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
    output = model(torch.randn(192, 3, 224, 224).cuda())
    print(LabelSmoothingCrossEntropy()(output.float(), torch.randint(0, 1000, (192,)).cuda()).item())
