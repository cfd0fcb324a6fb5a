"""Pairs of answers, as ids of random words; and packing of documents to whole rows."""

import random

import torch
from torch.utils.data import Dataset

IGNORED = -100


class Pairs(Dataset):
    """A prompt with a chosen and a rejected answer."""

    def __init__(self, num_pairs, vocab_size, longest, seed=0):
        draw = random.Random(seed)
        words = lambda fewest, most: [draw.randrange(3, vocab_size) for _ in range(draw.randint(fewest, most))]  # noqa: E731
        half = longest // 2
        self.rows = [
            {"prompt": words(half // 2, half), "chosen": words(half // 2, half), "rejected": words(4, half)}
            for _ in range(num_pairs)
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class PairCollator:
    """Chosen answers in the first half of the batch, rejected ones in the second, padded to the longest of both."""

    def __init__(self, pad_token_id, pad_to_multiple_of=8):
        self.pad_token_id = pad_token_id
        self.multiple = pad_to_multiple_of

    def __call__(self, rows):
        samples = [(row["prompt"], row[answer]) for answer in ("chosen", "rejected") for row in rows]
        longest = max(len(prompt) + len(answer) for prompt, answer in samples)
        longest = -(-longest // self.multiple) * self.multiple
        ids = torch.full((len(samples), longest), self.pad_token_id)
        mask = torch.zeros_like(ids)
        labels = torch.full_like(ids, IGNORED)
        for i, (prompt, answer) in enumerate(samples):
            end = len(prompt) + len(answer)
            ids[i, :end] = torch.tensor(prompt + answer)
            labels[i, len(prompt) : end] = torch.tensor(answer)
            mask[i, :end] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class Packed(Dataset):
    """Documents behind one another, cut into rows of `length`; positions start anew with each document."""

    def __init__(self, documents, length, eos_token_id):
        ids, positions = [], []
        for document in documents:
            ids += [*document, eos_token_id]
            positions += range(len(document) + 1)
        starts = range(0, len(ids) - length + 1, length)
        self.rows = [
            {
                "input_ids": torch.tensor(ids[at : at + length]),
                "position_ids": torch.tensor(positions[at : at + length]),
                "labels": torch.tensor(ids[at : at + length]),
            }
            for at in starts
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]
