"""timm's train.py as for NFNets: standardised weights, adaptive gradient clipping, SGD with Nesterov, channels last, fp16."""

import argparse

import timm
import torch
from timm.data import FastCollateMixup
from timm.loss import BinaryCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import PlateauLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, NativeScaler, accuracy
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="dm_nfnet_f0")
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--clip-grad", type=float, default=0.015)
args = parser.parse_args()


class Pictures(Dataset):
    def __len__(self):
        return 5 * args.batch_size

    def __getitem__(self, index):
        return torch.randint(0, 256, (3, args.size, args.size), dtype=torch.uint8).numpy(), index % 1000


mean = torch.tensor([0.485, 0.456, 0.406]).mul_(255).view(1, 3, 1, 1).cuda().half()
std = torch.tensor([0.229, 0.224, 0.225]).mul_(255).view(1, 3, 1, 1).cuda().half()
model = timm.create_model(args.model, num_classes=1000, drop_rate=0.2, drop_path_rate=0.1)
model = model.cuda().to(memory_format=torch.channels_last)
optimizer = create_optimizer_v2(model, opt="sgd", lr=0.1, weight_decay=2e-5, momentum=0.9)
loss_scaler = NativeScaler()
model_ema = ModelEmaV3(model, decay=0.9999)
collate = FastCollateMixup(mixup_alpha=0.4, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=1000)
loader = DataLoader(Pictures(), batch_size=args.batch_size, collate_fn=collate, num_workers=0, drop_last=True)
criterion = BinaryCrossEntropy(target_threshold=0.2)
scheduler = PlateauLRScheduler(optimizer)
losses = AverageMeter()
model.train()
for images, target in loader:
    images = images.cuda(non_blocking=True).half().sub_(mean).div_(std).contiguous(memory_format=torch.channels_last)
    target = target.cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.float16):
        output = model(images)
        loss = criterion(output, target)
    loss_scaler(
        loss, optimizer, clip_grad=args.clip_grad, clip_mode="agc",
        parameters=timm.models.model_parameters(model, exclude_head=True), create_graph=False,
    )
    optimizer.zero_grad()
    model_ema.update(model)
    losses.update(loss.item(), images.size(0))
    print(f"loss {losses.avg:.4f}")
model.eval()
with torch.no_grad():
    for module in (model, model_ema.module):
        images = torch.randn(2 * args.batch_size, 3, args.size, args.size, device="cuda").contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.float16):
            output = module(images)
        labels = torch.randint(0, 1000, (2 * args.batch_size,), device="cuda")
        top1, top5 = accuracy(output, labels, topk=(1, 5))
        print(top1.item(), top5.item())
scheduler.step(0, top1.item())
