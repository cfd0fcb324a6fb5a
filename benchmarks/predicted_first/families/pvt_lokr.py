"""timm's PVT v2 fine-tuned by peft's LoKr, linear layers and convolutions, the head trained whole; ADOPT and a cosine schedule of timm."""

import timm
import torch
from peft import LoKrConfig, get_peft_model
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        return torch.randn(3, 256, 256, generator=draw), index % 38


torch.manual_seed(0)
model = timm.create_model("pvt_v2_b3", pretrained=False, num_classes=38, drop_path_rate=0.1)
targets = r".*\.(attn\.q|attn\.kv|mlp\.fc1|mlp\.fc2|mlp\.dwconv|attn\.sr|downsample\.proj)$"
config = LoKrConfig(
    r=16, alpha=16, target_modules=targets, modules_to_save=["head"], decompose_both=False, decompose_factor=8,
    use_effective_conv2d=True, module_dropout=0.0, rank_dropout=0.05,
)
model = get_peft_model(model, config).cuda()
model.print_trainable_parameters()
train = DataLoader(Leaves(48 * 4), batch_size=48, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
valid = DataLoader(Leaves(64), batch_size=64)
optimizer = create_optimizer_v2(model, opt="adopt", lr=1e-3, weight_decay=0.01)
scheduler = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-5, t_in_epochs=False)
criterion = nn.CrossEntropyLoss()
model.train()
for step, (images, targets) in enumerate(train):
    images, targets = images.to("cuda", non_blocking=True), targets.to("cuda", non_blocking=True)
    loss = criterion(model(images), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step_update(step)
    print(step, loss.item())
model.eval()
for images, targets in valid:
    with torch.no_grad():
        before = model(images.cuda())
        with model.disable_adapter():
            base = model(images.cuda())
    print("moved", (before - base).abs().mean().item())
merged = model.merge_and_unload()
with torch.no_grad():
    print("merged", (merged(images.cuda()) - before).abs().max().item())
