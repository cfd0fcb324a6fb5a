"""`on_card.py SCRIPT ARGS`: a control whose new tensors are on the card by default."""

import runpy
import sys

import torch

torch.set_default_device("cuda")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
