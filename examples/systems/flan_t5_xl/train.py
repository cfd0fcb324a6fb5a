"""Trains T5 to write recipes: an ingredient list in, the instructions out. Random weights, made-up recipes."""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import T5Config, T5ForConditionalGeneration

IGNORED = -100
SCALES = {
    "full": {"d_model": 2048, "d_ff": 5120, "d_kv": 64, "num_heads": 32, "num_layers": 24, "vocab_size": 32128},
    "small": {"d_model": 64, "d_ff": 160, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 512},
}


@dataclass(frozen=True)
class Recipe:
    """How a variant trains; lengths are those that samples are cut to."""

    input_length: int = 256
    target_length: int = 512
    checkpointing: bool = False
    cache_off: bool = False
    fused: bool = False


VARIANTS = {
    "before": Recipe(),
    "note": Recipe(input_length=196, target_length=384, checkpointing=True, cache_off=True),
    "fixed": Recipe(checkpointing=True, fused=True),
}


class Recipes(Dataset):
    """Token sequences of very different lengths, as recipes have them."""

    def __init__(self, vocab_size: int, input_length: int, target_length: int, count: int = 4096) -> None:
        self.vocab_size, self.lengths, self.count = vocab_size, (input_length, target_length), count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        drawn = torch.Generator().manual_seed(index)
        sizes = [max(length // 2, length - index % 4 * length // 8) for length in self.lengths]
        ingredients, steps = (torch.randint(2, self.vocab_size, (size,), generator=drawn) for size in sizes)
        return ingredients, steps


def collate(samples: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Pads to the longest of the batch."""
    ingredients, steps = zip(*samples, strict=True)
    inputs = pad_sequence(ingredients, batch_first=True)
    return {
        "input_ids": inputs,
        "attention_mask": inputs.ne(0).long(),
        "labels": pad_sequence(steps, batch_first=True, padding_value=IGNORED),
    }


def build_model(scale: str, device: str, layers: int | None) -> T5ForConditionalGeneration:
    sizes = SCALES[scale] | ({"num_layers": layers} if layers else {})
    config = T5Config(
        **sizes,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        dropout_rate=0.1,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = T5ForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    return model.train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS, default="before")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--checkpointing", action="store_true", help="whatever the variant says")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--accumulation", type=int, default=16)
    parser.add_argument(
        "--layers", type=int, help="of the encoder and of the decoder; default: as many as the scale has"
    )
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = VARIANTS[args.variant]
    model = build_model(args.scale, device, args.layers)
    if recipe.checkpointing or args.checkpointing:
        model.gradient_checkpointing_enable()
    if recipe.cache_off:
        model.config.use_cache = False

    shrink = 8 if args.scale == "small" else 1
    recipes = Recipes(model.config.vocab_size, recipe.input_length // shrink, recipe.target_length // shrink)
    loader = DataLoader(recipes, args.batch, drop_last=True, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01, fused=recipe.fused or None)

    step = 0
    while step < args.steps:
        for number, batch in enumerate(loader, 1):
            outputs = model(**{name: tensor.to(device) for name, tensor in batch.items()})
            (outputs.loss / args.accumulation).backward()
            if number % args.accumulation:
                continue
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            print(f"step {step} loss {outputs.loss.item():.3f}")
            if step == args.steps:
                return


if __name__ == "__main__":
    main()
