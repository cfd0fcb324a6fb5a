"""Utterances of many lengths, and batches of similar ones."""

import random

import torch
from torch.utils.data import Dataset, Sampler


class Utterances(Dataset):
    """Noise with the letters that were "spoken" in it; lengths are known without making the wave."""

    def __init__(self, count, shortest, longest, vocab_size, seed=0):
        draw = random.Random(seed)
        self.lengths = [int(16000 * draw.uniform(shortest, longest)) for _ in range(count)]
        self.vocab_size = vocab_size

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        length = self.lengths[index]
        letters = torch.randint(1, self.vocab_size, (length // 3200,), generator=g)
        return torch.randn(length, generator=g), letters


class BucketSampler(Sampler):
    """Batches of neighbours by length, of at most `max_samples` with padding, in random order."""

    def __init__(self, lengths, max_samples, seed=0):
        self.batches = []
        batch = []
        for index in sorted(range(len(lengths)), key=lengths.__getitem__):
            if batch and lengths[index] * (len(batch) + 1) > max_samples:
                self.batches.append(batch)
                batch = []
            batch.append(index)
        self.batches.append(batch)
        self.draw = random.Random(seed)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter(self.draw.sample(self.batches, len(self.batches)))


def collate(samples):
    waves, letters = zip(*samples, strict=True)
    return (
        torch.nn.utils.rnn.pad_sequence(waves, batch_first=True),
        torch.tensor([len(wave) for wave in waves]),
        torch.cat(letters),
        torch.tensor([len(text) for text in letters]),
    )
