"""Trains a diffusion model with accelerate: `python train.py --resolution 64 --batch-size 16`."""

import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from ema import EMA
from schedule import NoiseSchedule
from torch.utils.data import DataLoader, Dataset
from unet import UNet


class Squares(Dataset):
    """Images (3, size, size) in [-1, 1] with one bright square each."""

    def __init__(self, num_images, size):
        self.num_images, self.size = num_images, size

    def __len__(self):
        return self.num_images

    def __getitem__(self, index):
        image = torch.full((3, self.size, self.size), -1.0)
        at = index % (self.size // 2)
        image[:, at : at + self.size // 4, at : at + self.size // 4] = 1.0
        return image


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--sampling-steps", type=int, default=4)
    parser.add_argument("--mixed-precision", default="fp16")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--output-dir", default="ddpm-squares")
    parser.add_argument("--resume-from")
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(
        mixed_precision=args.mixed_precision,
        gradient_accumulation_steps=args.accumulate,
        project_config=ProjectConfiguration(project_dir=args.output_dir, total_limit=2),
    )
    set_seed(0)
    model = UNet(width=args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = DataLoader(Squares(args.images, args.resolution), args.batch_size, shuffle=True, num_workers=2)
    steps = args.epochs * len(loader) // args.accumulate
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    ema = EMA(accelerator.unwrap_model(model).parameters())
    accelerator.register_for_checkpointing(ema)
    if args.resume_from:
        accelerator.load_state(args.resume_from)
    schedule = NoiseSchedule(1000, accelerator.device)

    for epoch in range(args.epochs):
        model.train()
        for images in loader:
            noise = torch.randn_like(images)
            t = torch.randint(0, schedule.steps, (images.shape[0],), device=images.device)
            noisy = schedule.add_noise(images, noise, t)
            with accelerator.accumulate(model):
                loss = F.mse_loss(model(noisy, t), noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                ema.step(accelerator.unwrap_model(model).parameters())
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
        sample(accelerator, model, ema, schedule, args)
        accelerator.save_state(os.path.join(args.output_dir, "latest"))


def sample(accelerator, model, ema, schedule, args):
    """Draw images with the averaged weights."""
    model.eval()
    parameters = list(accelerator.unwrap_model(model).parameters())
    ema.store(parameters)
    ema.copy_to(parameters)
    shape = (args.batch_size // 2, 3, args.resolution, args.resolution)
    images = schedule.sample(model, shape, args.sampling_steps)
    ema.restore(parameters)
    os.makedirs(args.output_dir, exist_ok=True)
    torch.save(images.cpu(), os.path.join(args.output_dir, "samples.pt"))


if __name__ == "__main__":
    main()
