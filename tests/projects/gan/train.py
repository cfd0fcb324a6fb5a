"""Trains a GAN with two optimizers: `python train.py --critic-steps 2`, and `--resume last.pt` to go on."""

import torch
from networks import Discriminator, Generator, gradient_penalty
from options import parse
from torch.utils.data import DataLoader, TensorDataset


def main():
    opt = parse()
    torch.manual_seed(0)
    device = "cuda"
    generator, discriminator = Generator(opt.nz, opt.width).to(device), Discriminator(opt.width).to(device)
    average = torch.optim.swa_utils.AveragedModel(generator, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn())
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    objects = {
        "generator": generator,
        "discriminator": discriminator,
        "average": average,
        "optimizer_g": optimizer_g,
        "optimizer_d": optimizer_d,
    }
    first = 0
    if opt.resume:
        checkpoint = torch.load(opt.resume, map_location=device, weights_only=True)
        for name, state in objects.items():
            state.load_state_dict(checkpoint[name])
        first = checkpoint["epoch"] + 1
    images = DataLoader(TensorDataset(torch.rand(opt.batch_size * 2, 3, 64, 64) * 2 - 1), opt.batch_size, shuffle=True)
    seen = torch.randn(16, opt.nz, device=device)
    for epoch in range(first, opt.epochs):
        for i, (real,) in enumerate(images):
            loss_d = step_discriminator(generator, discriminator, optimizer_d, real.to(device), opt)
            if (i + 1) % opt.critic_steps == 0:
                loss_g = step_generator(generator, discriminator, optimizer_g, opt, device)
                average.update_parameters(generator)
                print(f"[{epoch}][{i}] loss_d {loss_d.item():.3f} loss_g {loss_g.item():.3f}")
        if epoch % opt.save_every == 0:
            with torch.no_grad():
                torch.save(average(seen).cpu(), f"samples-{epoch}.pt")
            state = {name: thing.state_dict() for name, thing in objects.items()}
            torch.save({"epoch": epoch, **state}, "last.pt")


def step_discriminator(generator, discriminator, optimizer, real, opt):
    optimizer.zero_grad()
    with torch.no_grad():
        fake = generator(torch.randn(real.shape[0], opt.nz, device=real.device))
    loss = discriminator(fake).mean() - discriminator(real).mean()
    loss = loss + opt.penalty * gradient_penalty(discriminator, real, fake)
    loss.backward()
    optimizer.step()
    return loss


def step_generator(generator, discriminator, optimizer, opt, device):
    discriminator.requires_grad_(False)
    optimizer.zero_grad()
    loss = -discriminator(generator(torch.randn(opt.batch_size, opt.nz, device=device))).mean()
    loss.backward()
    optimizer.step()
    discriminator.requires_grad_(True)
    return loss


if __name__ == "__main__":
    main()
