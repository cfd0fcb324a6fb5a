"""Meters, batches and checkpoints, in the manner of torchvision's references."""

import datetime
import os
import time
from collections import defaultdict, deque

import torch


class SmoothedValue:
    """The median and the average of the last values."""

    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.deque.append(value)
        self.count += 1
        self.total += value

    def __str__(self):
        median = torch.tensor(list(self.deque)).median().item()
        return f"{median:.4f} ({self.total / self.count:.4f})"


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value.item() if isinstance(value, torch.Tensor) else value)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header):
        start = time.time()
        for i, batch in enumerate(iterable):
            yield batch
            if i % print_freq == 0 or i == len(iterable) - 1:
                memory = f"max mem: {torch.cuda.max_memory_allocated() / 1024**2:.0f}"
                print(self.delimiter.join([header, f"[{i}/{len(iterable)}]", str(self), memory]))
        print(f"{header} Total time: {datetime.timedelta(seconds=int(time.time() - start))}")


def collate_fn(batch):
    return tuple(zip(*batch, strict=True))


def reduce_dict(losses):
    """The losses averaged over all processes, of which there is one."""
    with torch.inference_mode():
        return dict(zip(sorted(losses), torch.stack([losses[name] for name in sorted(losses)]), strict=True))


def save_on_master(checkpoint, output_dir, epoch):
    os.makedirs(output_dir, exist_ok=True)
    for name in (f"model_{epoch}.pth", "checkpoint.pth"):
        torch.save(checkpoint, os.path.join(output_dir, name))
