"""torchvision's quantization reference: fused MobileNet V3 trained through fake quantization, observers stopped, statistics frozen."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models.quantization import mobilenet_v3_large
from torchvision.transforms import v2


class Pictures(Dataset):
    def __init__(self, count, transform):
        self.count, self.transform = count, transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        picture = torch.randint(0, 256, (3, 256, 256), dtype=torch.uint8, generator=torch.Generator().manual_seed(index))
        return self.transform(picture), index % 1000


def train_one_epoch(model, criterion, optimizer, loader, epoch):
    model.train()
    for step, (image, target) in enumerate(loader):
        image, target = image.cuda(non_blocking=True), target.cuda(non_blocking=True)
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, step, loss.item())


def evaluate(model, criterion, loader):
    model.eval()
    with torch.inference_mode():
        for image, target in loader:
            image, target = image.cuda(), target.cuda()
            print("valid", criterion(model(image), target).item())


torch.manual_seed(0)
prepare = [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
train = DataLoader(
    Pictures(96 * 2, v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *prepare])), 96, shuffle=True, num_workers=2, pin_memory=True
)
valid = DataLoader(Pictures(96, v2.Compose([v2.CenterCrop(224), *prepare])), 96)
model = mobilenet_v3_large(weights=None, quantize=False)
model.train()
model.fuse_model(is_qat=True)
model.qconfig = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
torch.ao.quantization.prepare_qat(model, inplace=True)
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
criterion = nn.CrossEntropyLoss()
model.apply(torch.ao.quantization.enable_observer)
model.apply(torch.ao.quantization.enable_fake_quant)
for epoch in range(3):
    train_one_epoch(model, criterion, optimizer, train, epoch)
    scheduler.step()
    with torch.inference_mode():
        if epoch >= 1:
            model.apply(torch.ao.quantization.disable_observer)
        if epoch >= 2:
            model.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats)
    evaluate(model, criterion, valid)
