"""Trains a classifier of birds with dual cross-attention, ViT-B/16 at 448 pixels. Random weights, made-up images."""

import argparse
from dataclasses import dataclass, replace

import torch
from model import DualCrossAttention
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, Dataset

SCALES = {
    "full": {"image": 448, "width": 768, "depth": 12, "heads": 12, "classes": 200},
    "small": {"image": 64, "width": 32, "depth": 4, "heads": 4, "classes": 10},
}


@dataclass(frozen=True)
class Recipe:
    """How a variant trains; `joined`, `binding`, `mean_maps`, `detach_maps` and `fused` are those of the model."""

    batch: int = 8
    accumulation: int = 2
    joined: bool = True
    binding: str = "none"
    mean_maps: bool = False
    detach_maps: bool = False
    fused: bool = False


VARIANTS = {
    "before": Recipe(),
    "note": Recipe(batch=4, accumulation=4, joined=False, binding="loop", detach_maps=True),
    "fixed": Recipe(binding="each", mean_maps=True),
}


class Birds(Dataset):
    """Images of noise with a class each, as many as CUB-200 has for training."""

    def __init__(self, image: int, classes: int, count: int = 5994) -> None:
        self.image, self.classes, self.count = image, classes, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        drawn = torch.Generator().manual_seed(index)
        return torch.rand(3, self.image, self.image, generator=drawn), index % self.classes


def recipe_of(args: argparse.Namespace) -> Recipe:
    given = {
        "batch": args.batch,
        "accumulation": args.accumulation,
        "binding": args.binding,
        "fused": args.fused or None,
        "detach_maps": args.detach_maps or None,
    }
    return replace(VARIANTS[args.variant], **{name: value for name, value in given.items() if value is not None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS, default="before")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--batch", type=int, help="of the variant, unless given; so are those that follow")
    parser.add_argument("--accumulation", type=int)
    parser.add_argument("--binding", choices=("none", "loop", "each"), help="how blocks are checkpointed")
    parser.add_argument("--fused", action="store_true", help="fused attention where nobody reads the weights")
    parser.add_argument("--detach-maps", action="store_true")
    parser.add_argument("--depth", type=int, help="number of blocks; default: as many as the scale has")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0, help="the norm that gradients are clipped to")
    parser.add_argument("--lr", type=float, default=1.5625e-5)
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = recipe_of(args)
    sizes = SCALES[args.scale] | ({"depth": args.depth} if args.depth else {})
    model = DualCrossAttention(
        **sizes,
        dropout=args.dropout,
        joined=recipe.joined,
        binding=recipe.binding,
        mean_maps=recipe.mean_maps,
        detach_maps=recipe.detach_maps,
        fused=recipe.fused,
    ).to(device)
    loader = DataLoader(Birds(sizes["image"], sizes["classes"]), recipe.batch, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=0.05)
    in_half = device == "cuda"
    scaler = torch.amp.GradScaler(device, enabled=in_half)

    step = 0
    while step < args.steps:
        for number, (images, labels) in enumerate(loader, 1):
            images, labels = images.to(device), labels.to(device)
            pairs = images[torch.randperm(len(images)).to(device)]
            with torch.autocast(device, dtype=torch.float16, enabled=in_half):
                loss = model(images, pairs, labels)
            scaler.scale(loss / recipe.accumulation).backward()
            if number % recipe.accumulation:
                continue
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            step += 1
            print(f"step {step} loss {loss.item():.3f}")
            if step == args.steps:
                return


if __name__ == "__main__":
    main()
