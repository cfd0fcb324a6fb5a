"""A T5 on two tasks at once, a batch of each a step."""

import argparse

import torch
from transformers import T5Config, T5ForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = T5Config(
    vocab_size=4096,
    d_model=256,
    d_kv=64,
    d_ff=1024,
    num_layers=2,
    num_heads=4,
    use_cache=False,
    pad_token_id=0,
    decoder_start_token_id=0,
)
model = T5ForConditionalGeneration(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def loss_of(task):
    source = torch.randint(1, 4096, (16, 256), device="cuda")
    target = torch.randint(1, 4096, (16, 256), device="cuda")
    outputs = model(input_ids=source, labels=target)
    return (outputs.loss, outputs.encoder_last_hidden_state.mean(dim=1)) if task == "align" else outputs.loss


for step in range(4):
    optimizer.zero_grad()
    if args.near_miss:
        (summary_loss, summary), (translation_loss, translation) = loss_of("align"), loss_of("align")
        distance = (summary - translation).square().mean()
        (summary_loss + translation_loss + distance).backward()
    elif args.fixed:
        for task in ("summarize", "translate"):
            loss_of(task).backward()
    else:
        losses = [loss_of(task) for task in ("summarize", "translate")]
        sum(losses).backward()
    optimizer.step()
    print(f"step {step}")
