"""timm's AugMix recipe on HGNet V2: three views of a picture, a batch norm for each, Jensen-Shannon loss, its prefetching loader, MARS."""

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import AugMixDataset, create_loader
from timm.layers import convert_splitbn_model
from timm.loss import JsdCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, NativeScaler, accuracy, random_seed
from torch import nn


class Photos(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count, self.transform = count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        tiles = np.random.default_rng(index).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        return self.transform(Image.fromarray(tiles).resize((288, 288))), index % 1000


def main():
    random_seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = timm.create_model("hgnetv2_b4", pretrained=False, num_classes=1000, drop_rate=0.1)
    model = convert_splitbn_model(model, 3).to(device)
    model = model.to(memory_format=torch.channels_last)
    train = create_loader(
        AugMixDataset(Photos(160), num_splits=3), (3, 224, 224), 40, is_training=True, no_aug=False, re_prob=0.25, re_split=True,
        auto_augment="augmix-m3-w2", num_aug_splits=3, num_workers=2, device=device, persistent_workers=False,
    )
    valid = create_loader(Photos(64), (3, 224, 224), 64, is_training=False, num_workers=1, device=device, persistent_workers=False)
    optimizer = create_optimizer_v2(model, opt="mars", lr=2e-3, weight_decay=0.02)
    scheduler, _ = create_scheduler_v2(optimizer, sched="tanh", num_epochs=4, warmup_epochs=0, updates_per_epoch=len(train))
    scaler, losses = NativeScaler(), AverageMeter()
    criterion = JsdCrossEntropy(num_splits=3, smoothing=0.1)
    model.train()
    for step, (images, target) in enumerate(train):
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(images), target)
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=0.02, clip_mode="agc", parameters=timm.models.model_parameters(model, exclude_head=True))
        torch.cuda.synchronize()
        losses.update(loss.item(), images.size(0))
        scheduler.step_update(num_updates=step + 1, metric=losses.avg)
        print(step, losses.val)
    model.eval()
    with torch.no_grad():
        for images, target in valid:
            images = images.contiguous(memory_format=torch.channels_last)
            with torch.autocast("cuda", dtype=torch.float16):
                output = model(images)
            print(nn.functional.cross_entropy(output, target).item(), [float(a) for a in accuracy(output, target, topk=(1, 5))])


if __name__ == "__main__":
    main()
