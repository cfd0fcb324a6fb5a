"""What scripts do about a full card: `full_card.py HOW [NUMBER]`, on a card of which about a GiB can be used.

An example takes 64 MiB: 14 of them fit, 15 do not.
"""

import os
import sys
import time

import torch
from torch import nn

MIB = 2**20
WIDTH = 8 * MIB


class Wide(nn.Module):
    """A single parameter that scales a number for each example, `WIDTH` times."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, numbers):
        return (numbers.view(-1, 1).expand(-1, WIDTH) * self.weight).tanh().sum()


model = Wide().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(size):
    """One step with `size` examples."""
    model(torch.ones(size, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()


def train(size):
    """As many steps as anybody wants."""
    for _ in range(1000):
        step(size)


def halve():
    """Try smaller batches until one fits."""
    size = 32
    while True:
        try:
            train(size)
            break
        except torch.OutOfMemoryError:
            size //= 2
            torch.cuda.empty_cache()


def exhaust():
    """Try smaller batches until none is left."""
    kept, size = torch.empty(900 * MIB, dtype=torch.uint8, device="cuda"), 8
    while size:
        try:
            train(size)
        except torch.OutOfMemoryError:
            size //= 2
    raise RuntimeError(f"nothing fits beside {kept.numel()} bytes")


def probe(code=0):
    """Double the batch until it does not fit, say so and end."""
    size = 1
    while True:
        try:
            step(size)
            size *= 2
        except torch.OutOfMemoryError:
            break
    print("the largest is", size // 2)
    sys.exit(code)


def advise(code=1):
    """Tell the person what to do, and end."""
    try:
        train(15)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        print("reduce the batch size")
        sys.exit(code)


def skip():
    """Leave out the batches that do not fit."""
    for i in range(1000):
        try:
            step(32 if i % 4 == 2 else 8)
        except torch.OutOfMemoryError:
            optimizer.zero_grad()
            torch.cuda.empty_cache()


def retry():
    """Many small tensors and then a few large ones, which the cache does not hold at the same time."""
    for _ in range(1000):
        kept = [torch.empty(MIB, dtype=torch.uint8, device="cuda") for _ in range(400)]
        del kept
        step(11)


def multiply():
    """Leave the card nothing but what is cached, and then ask cuBLAS for a product."""
    matrix, kept = torch.ones(64, 64, device="cuda"), []
    while True:
        try:
            kept.append(torch.empty(2 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            break
    matrix @ matrix


def ask():
    """Take the size from the person who types it."""
    train(int(input()))


def linger():
    """A second step that takes for ever."""
    for i in range(1000):
        time.sleep(60 if i == 1 else 0)
        step(15)


def touch():
    """Start another process, read what nobody types, print, write a file, and then run out of memory."""
    if os.fork() == 0:
        sys.exit(3)
    print("a line is read:", sys.stdin.readline())
    print("x" * 100_000, file=sys.stderr)
    with open("notes.txt", "w") as file:
        file.write("hello")
    train(15)


globals()[sys.argv[1]](*map(int, sys.argv[2:]))
