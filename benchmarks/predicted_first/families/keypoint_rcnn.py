"""torchvision's detection reference: Keypoint R-CNN, pictures of many sizes, a linear warm-up, SGD, fp16, an evaluation."""

import math

import torch
import torchvision
from torchvision.models.detection import keypointrcnn_resnet50_fpn


class People(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        height, width = [(480, 640), (640, 480), (427, 640), (612, 612)][index % 4]
        count = 1 + index % 6
        corner = torch.rand(count, 2, generator=draw) * torch.tensor([width * 0.5, height * 0.5])
        size = 40 + torch.rand(count, 2, generator=draw) * torch.tensor([width * 0.4, height * 0.4])
        points = corner[:, None] + torch.rand(count, 17, 2, generator=draw) * size[:, None]
        visible = torch.randint(0, 3, (count, 17, 1), generator=draw).float()
        target = {
            "boxes": torch.cat([corner, corner + size], 1), "labels": torch.ones(count, dtype=torch.int64),
            "keypoints": torch.cat([points, visible], 2), "image_id": index, "area": size.prod(1),
            "iscrowd": torch.zeros(count, dtype=torch.int64),
        }
        return torch.rand(3, height, width, generator=draw), target


def collate_fn(batch):
    return tuple(zip(*batch))


def train_one_epoch(model, optimizer, loader, device, scaler):
    model.train()
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.001, total_iters=10)
    for images, targets in loader:
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
        with torch.amp.autocast("cuda", enabled=scaler is not None):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
        loss_value = sum(loss.detach() for loss in loss_dict.values()).item()
        if math.isinf(loss_value):
            print("Loss is infinite")
        optimizer.zero_grad()
        scaler.scale(losses).backward()
        scaler.step(optimizer)
        scaler.update()
        warmup.step()
        print(f"{loss_value:.3f} lr {optimizer.param_groups[0]['lr']:.5f}")


@torch.inference_mode()
def evaluate(model, loader, device):
    model.eval()
    for images, _ in loader:
        outputs = model([image.to(device) for image in images])
        outputs = [{k: v.to("cpu") for k, v in t.items()} for t in outputs]
        print([len(output["scores"]) for output in outputs])


def main():
    device = torch.device("cuda")
    torch.manual_seed(0)
    model = keypointrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=2, num_keypoints=17)
    model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    train = torch.utils.data.DataLoader(People(40), batch_size=8, num_workers=2, collate_fn=collate_fn)
    valid = torch.utils.data.DataLoader(People(6), batch_size=1, num_workers=0, collate_fn=collate_fn)
    train_one_epoch(model, optimizer, train, device, scaler)
    evaluate(model, valid, device)


if __name__ == "__main__":
    print(torchvision.__version__)
    main()
