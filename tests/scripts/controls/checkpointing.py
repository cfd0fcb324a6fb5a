"""Train a small residual network on tokens, its blocks checkpointed in one of several ways."""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument(
    "--checkpoint",
    default="none",
    choices=["none", "blocks", "late-binding", "forget-rng", "reentrant", "reentrant-late-binding", "reentrant-dict"],
)
parser.add_argument("--blocks", type=int, default=3)
parser.add_argument("--dropout", type=float, default=0.0)
parser.add_argument("--noise", type=float, default=0.0, help="of a generator of its own, inside each block")
parser.add_argument("--count-calls", action="store_true", help="in a buffer of each block")
parser.add_argument("--freeze-embedding", action="store_true")
parser.add_argument("--require-input-grads", action="store_true")
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width: int, index: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.dropout = nn.Dropout(args.dropout)
        self.down = nn.Linear(4 * width, width)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.generator = torch.Generator().manual_seed(index)

    def forward(self, x):
        h = self.norm(x)
        if args.noise:
            h = h + args.noise * torch.randn(h.shape, generator=self.generator, dtype=h.dtype)
        if args.count_calls:
            self.calls += 1
        return x + self.down(self.dropout(torch.relu(self.up(h))))


class Model(nn.Module):
    def __init__(self, vocabulary: int = 50, width: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, index) for index in range(args.blocks))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if args.require_input_grads:
            x = x.requires_grad_()
        for block in self.blocks:
            if args.checkpoint == "none":
                x = block(x)
            elif args.checkpoint == "late-binding":
                x = checkpoint(lambda h: block(h), x, use_reentrant=False)
            elif args.checkpoint == "reentrant-late-binding":
                x = checkpoint(lambda h: block(h), x, use_reentrant=True)
            elif args.checkpoint == "forget-rng":
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            elif args.checkpoint == "reentrant-dict":
                x = checkpoint(lambda inputs, block=block: block(inputs["x"]), {"x": x}, use_reentrant=True)
            else:
                x = checkpoint(block, x, use_reentrant=args.checkpoint == "reentrant")
        return self.head(x)


torch.manual_seed(0)
model = Model()
model.embedding.requires_grad_(not args.freeze_embedding)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
data = torch.Generator().manual_seed(1)
for step in range(args.steps):
    tokens = torch.randint(50, (8, 17), generator=data)
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
