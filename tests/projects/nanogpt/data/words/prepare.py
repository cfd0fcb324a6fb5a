"""Writes train.bin, val.bin and meta.pkl: a text of random words, one token a word."""

import os
import pickle

import numpy as np

here = os.path.dirname(__file__)
vocab_size = 16000
tokens = np.random.default_rng(0).zipf(1.3, size=40_000) % vocab_size
split = int(len(tokens) * 0.9)
tokens[:split].astype(np.uint16).tofile(os.path.join(here, "train.bin"))
tokens[split:].astype(np.uint16).tofile(os.path.join(here, "val.bin"))
with open(os.path.join(here, "meta.pkl"), "wb") as f:
    pickle.dump({"vocab_size": vocab_size}, f)
print(f"{split} training tokens")
