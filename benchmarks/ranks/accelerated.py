"""A loop with accelerate on several ranks: `accelerate launch --num_processes 2 accelerated.py`."""

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.utils.data import DataLoader
from train import llama
from trainer import Tokens

NUM_STEPS = 6


def main():
    """In bfloat16, with clipped gradients; the loss is gathered in every second step."""
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Tokens(), batch_size=4))
    for step, batch in zip(range(2 * NUM_STEPS), loader, strict=False):
        with accelerator.accumulate(model):
            loss = model(**batch, use_cache=False).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if step % 4 == 3:
            accelerator.print(accelerator.gather(loss.detach()).mean().item())
    accelerator.wait_for_everyone()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
