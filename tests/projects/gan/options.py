"""The options of train.py."""

from argparse import ArgumentParser
from dataclasses import dataclass


@dataclass
class Options:
    batch_size: int = 128
    nz: int = 100
    width: int = 64
    lr: float = 2e-4
    penalty: float = 10.0
    critic_steps: int = 2
    epochs: int = 100
    save_every: int = 2
    resume: str = ""


def parse():
    parser = ArgumentParser()
    for name, default in vars(Options()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return Options(**vars(parser.parse_args()))
