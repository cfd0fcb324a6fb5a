"""Train a small language model on sequences of unequal lengths, a batch of eight in one or several micro-batches."""

import argparse
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--batch", type=int, default=8, help="sequences of one optimizer step")
parser.add_argument("--samples", type=int, default=32)
parser.add_argument("--data-seed", type=int, default=1)
parser.add_argument("--shuffle-seed", type=int, default=2)
parser.add_argument("--equal-lengths", action="store_true")
parser.add_argument("--divide-by", default="tokens", choices=["tokens", "batches", "accumulate", "nothing"])
parser.add_argument("--last-window", default="stepped", choices=["stepped", "left"])
parser.add_argument("--clip", default="never", choices=["never", "window", "micro-batch"])
parser.add_argument("--schedule", default="window", choices=["window", "micro-batch", "none"])
parser.add_argument("--zero", default="window", choices=["window", "micro-batch", "never"])
parser.add_argument(
    "--optimizer",
    default="adamw",
    choices=["adamw", "foreach", "fused", "adam", "sgd", "in-backward", "reset-each-step"],
)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--loss-chunks", type=int, default=1)
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()

VOCABULARY, LONGEST, IGNORED = 40, 24, -100


def sequences():
    """Tokens and labels of each sample; padding is ignored."""
    data = torch.Generator().manual_seed(args.data_seed)
    for _ in range(args.samples):
        tokens = torch.randint(VOCABULARY, (LONGEST,), generator=data)
        length = LONGEST if args.equal_lengths else int(torch.randint(2, LONGEST + 1, (), generator=data))
        yield tokens, torch.where(torch.arange(LONGEST) < length, tokens, IGNORED)


class Model(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Conv1d(width, width, 3)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        x = x + self.mix(nn.functional.pad(x, (2, 0)))
        return self.head(self.norm(x.transpose(1, 2)))


def summed_loss(logits, labels):
    """Cross-entropy of each next token, summed; in chunks, so that the float32 copy of the logits stays small."""
    logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    parts = zip(logits.chunk(args.loss_chunks), labels.chunk(args.loss_chunks), strict=True)
    return sum(nn.functional.cross_entropy(*part, ignore_index=IGNORED, reduction="sum") for part in parts)


def num_tokens(window):
    return sum(int((labels[:, 1:] != IGNORED).sum()) for _, labels in window)


def windows(loader, size: int):
    batches = iter(loader)
    while window := list(islice(batches, size)):
        yield window


def build_optimizer(model):
    if args.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    if args.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), lr=args.lr)
    kinds = {"foreach": {"foreach": True}, "fused": {"fused": True}}
    return torch.optim.AdamW(model.parameters(), lr=args.lr, **kinds.get(args.optimizer, {}))


def step_in_backward(model):
    """Each parameter has an optimizer of its own, which runs as soon as its gradient is there."""
    optimizers = {p: torch.optim.AdamW([p], lr=args.lr) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)


torch.manual_seed(0)
model = Model()
optimizer = None if args.optimizer == "in-backward" else build_optimizer(model)
if optimizer is None:
    step_in_backward(model)
scheduler = optimizer and torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
shuffle = torch.Generator().manual_seed(args.shuffle_seed)
loader = DataLoader(list(sequences()), batch_size=args.batch // args.accumulate, shuffle=True, generator=shuffle)
for epoch in range(args.epochs):
    for number, window in enumerate(windows(loader, args.accumulate)):
        tokens_of_window = num_tokens(window)
        for tokens, labels in window:
            loss = summed_loss(model(tokens), labels)
            loss = loss / (tokens_of_window if args.divide_by == "tokens" else num_tokens([(tokens, labels)]))
            if args.divide_by == "batches":
                loss = loss / len(window)
            elif args.divide_by == "accumulate":
                loss = loss / args.accumulate
            if args.zero == "micro-batch":
                model.zero_grad()
            loss.backward()
            if args.clip == "micro-batch":
                nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            if args.schedule == "micro-batch":
                scheduler.step()
        print("epoch", epoch, "window", number, "loss", loss.item())
        if optimizer is None or (args.last_window == "left" and len(window) < args.accumulate):
            continue
        if args.clip == "window":
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        if args.optimizer == "reset-each-step":
            optimizer.state.clear()
        optimizer.step()
        if args.schedule == "window":
            scheduler.step()
        if args.zero != "never":
            optimizer.zero_grad()
