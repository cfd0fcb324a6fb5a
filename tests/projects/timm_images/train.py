"""Image classification in the manner of timm's train.py: `python train.py --config small.yaml`."""

import logging
import os
import time
from contextlib import nullcontext
from functools import partial

import torch
from options import parse_args
from timm.data import Mixup, create_dataset, create_loader, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.models import create_model, safe_model_name
from timm.optim import create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler_v2
from timm.utils import (
    AverageMeter,
    CheckpointSaver,
    ModelEmaV3,
    NativeScaler,
    accuracy,
    random_seed,
    setup_default_logging,
)

_logger = logging.getLogger("train")


def main():
    setup_default_logging()
    args, args_text = parse_args()
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    random_seed(args.seed, 0)

    model = create_model(args.model, pretrained=False, num_classes=args.num_classes, drop_path_rate=args.drop_path)
    if args.grad_checkpointing:
        model.set_grad_checkpointing(enable=True)
    data_config = resolve_data_config(vars(args), model=model)
    model.to(device=device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    optimizer = create_optimizer_v2(model, **optimizer_kwargs(cfg=args))
    amp_autocast = partial(torch.autocast, device_type=device.type, dtype=torch.float16) if args.amp else nullcontext
    loss_scaler = NativeScaler() if args.amp else None
    model_ema = ModelEmaV3(model, decay=args.model_ema_decay, use_warmup=True) if args.model_ema else None

    loader_train = _loader(args, data_config, "train", device)
    loader_eval = _loader(args, data_config, "validation", device)
    mixup_fn = None
    if args.mixup > 0 or args.cutmix > 0:
        mixup_fn = Mixup(
            mixup_alpha=args.mixup,
            cutmix_alpha=args.cutmix,
            label_smoothing=args.smoothing,
            num_classes=args.num_classes,
        )
    train_loss_fn = (SoftTargetCrossEntropy() if mixup_fn else LabelSmoothingCrossEntropy(args.smoothing)).to(device)
    validate_loss_fn = torch.nn.CrossEntropyLoss().to(device)
    scheduler, num_epochs = create_scheduler_v2(
        optimizer,
        sched=args.sched,
        num_epochs=args.epochs,
        warmup_epochs=args.warmup_epochs,
        updates_per_epoch=len(loader_train) // args.grad_accum_steps,
    )
    output_dir = os.path.join(args.output, f"{time.strftime('%Y%m%d')}-{safe_model_name(args.model)}")
    os.makedirs(output_dir)
    saver = CheckpointSaver(
        model,
        optimizer,
        args=args,
        model_ema=model_ema,
        amp_scaler=loss_scaler,
        checkpoint_dir=output_dir,
        max_history=2,
    )
    with open(os.path.join(output_dir, "args.yaml"), "w") as f:
        f.write(args_text)

    for epoch in range(num_epochs):
        train_one_epoch(
            epoch,
            model,
            loader_train,
            optimizer,
            train_loss_fn,
            args,
            device,
            amp_autocast,
            loss_scaler,
            model_ema,
            mixup_fn,
        )
        metrics = validate(model, loader_eval, validate_loss_fn, device, amp_autocast)
        if model_ema is not None:
            metrics = validate(
                model_ema.module, loader_eval, validate_loss_fn, device, amp_autocast, log_suffix=" (EMA)"
            )
        scheduler.step(epoch + 1, metrics["top1"])
        saver.save_checkpoint(epoch, metric=metrics["top1"])


def _loader(args, data_config, split, device):
    is_training = split == "train"
    dataset = create_dataset("", root=args.data_dir, split=split, is_training=is_training)
    return create_loader(
        dataset,
        input_size=data_config["input_size"],
        batch_size=args.batch_size if is_training else args.validation_batch_size or args.batch_size,
        is_training=is_training,
        re_prob=0.25 if is_training else 0.0,
        interpolation=data_config["interpolation"],
        mean=data_config["mean"],
        std=data_config["std"],
        crop_pct=None if is_training else data_config["crop_pct"],
        num_workers=args.workers,
        pin_memory=True,
        device=device,
    )


def train_one_epoch(
    epoch, model, loader, optimizer, loss_fn, args, device, amp_autocast, loss_scaler, model_ema, mixup_fn
):
    losses_m = AverageMeter()
    model.train()
    accum_steps = args.grad_accum_steps
    optimizer.zero_grad()
    for batch_idx, (input, target) in enumerate(loader):
        need_update = (batch_idx + 1) % accum_steps == 0
        if mixup_fn is not None:
            input, target = mixup_fn(input, target)
        if args.channels_last:
            input = input.contiguous(memory_format=torch.channels_last)
        with amp_autocast():
            output = model(input)
            loss = loss_fn(output, target) / accum_steps
        if loss_scaler is not None:
            loss_scaler(
                loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters(), need_update=need_update
            )
        else:
            loss.backward()
            if need_update:
                optimizer.step()
        losses_m.update(loss.item() * accum_steps, input.size(0))
        if not need_update:
            continue
        optimizer.zero_grad()
        if model_ema is not None:
            model_ema.update(model, step=epoch * len(loader) + batch_idx)
        torch.cuda.synchronize()
        _logger.info("Train: %d [%d/%d] Loss: %.3g", epoch, batch_idx, len(loader), losses_m.avg)


def validate(model, loader, loss_fn, device, amp_autocast, log_suffix=""):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    model.eval()
    with torch.inference_mode():
        for input, target in loader:
            with amp_autocast():
                output = model(input)
                loss = loss_fn(output, target)
            acc1, _ = accuracy(output, target, topk=(1, 2))
            torch.cuda.synchronize()
            losses_m.update(loss.item(), input.size(0))
            top1_m.update(acc1.item(), output.size(0))
    _logger.info("Test%s: Loss: %.3f Acc@1: %.3f", log_suffix, losses_m.avg, top1_m.avg)
    return {"loss": losses_m.avg, "top1": top1_m.avg}


if __name__ == "__main__":
    main()
