"""Detection in the manner of torchvision's references/detection: `python train.py --model retinanet_resnet50_fpn`."""

import argparse

import torch
import torchvision
import utils
from coco_like import CocoLike, RandomHorizontalFlip, make_annotations
from engine import evaluate, train_one_epoch


def get_args_parser():
    parser = argparse.ArgumentParser(description="Detection")
    parser.add_argument("--model", default="fasterrcnn_resnet50_fpn")
    parser.add_argument("--num-classes", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-b", "--batch-size", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=26)
    parser.add_argument("-j", "--workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", "--weight-decay", type=float, default=1e-4, dest="weight_decay")
    parser.add_argument("--print-freq", type=int, default=1)
    parser.add_argument("--output-dir", default="checkpoints")
    parser.add_argument("--resume", default="")
    parser.add_argument("--aspect-ratio-group-factor", type=int, default=3)
    parser.add_argument("--trainable-backbone-layers", type=int)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", action="store_true")
    return parser


def main(args):
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    dataset = CocoLike(make_annotations(args.images, args.num_classes), RandomHorizontalFlip())
    dataset_test = CocoLike(make_annotations(2, args.num_classes, seed=1))
    train_sampler = torch.utils.data.RandomSampler(dataset)
    train_batch_sampler = torch.utils.data.BatchSampler(train_sampler, args.batch_size, drop_last=True)
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_sampler=train_batch_sampler, num_workers=args.workers, collate_fn=utils.collate_fn
    )
    data_loader_test = torch.utils.data.DataLoader(
        dataset_test, batch_size=1, num_workers=args.workers, collate_fn=utils.collate_fn
    )
    model = torchvision.models.get_model(
        args.model,
        weights=None,
        weights_backbone=None,
        num_classes=args.num_classes,
        trainable_backbone_layers=args.trainable_backbone_layers,
        min_size=256,
        max_size=384,
    )
    model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    lr_scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[16, 22], gamma=0.1)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        lr_scheduler.load_state_dict(checkpoint["lr_scheduler"])
        start_epoch = checkpoint["epoch"] + 1

    for epoch in range(start_epoch, args.epochs):
        train_one_epoch(model, optimizer, data_loader, device, epoch, args.print_freq, scaler)
        lr_scheduler.step()
        checkpoint = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "lr_scheduler": lr_scheduler.state_dict(),
            "epoch": epoch,
        }
        utils.save_on_master(checkpoint, args.output_dir, epoch)
        evaluate(model, data_loader_test, device)


if __name__ == "__main__":
    main(get_args_parser().parse_args())
