"""What the card runs: kernel choice, and memory that kernels take without returning it.

Three kinds of rules, in files by family:

- What the card runs in place of a composite operator (`composites.py` puts them together): attention, recurrent
  layers, losses, products, the fast paths of transformers. They are kernels for autograd's key, or steps in the mode.
- The shapes of results that torch cannot tell without a device (`fake_kernels.py`, `dynamic_shapes.py`).
- The blocks that a kernel takes and gives back (`TEMPORARIES` of each file, put together in `workspaces.py`), as signed
  bytes in the card's order (`temporaries.py`). `known_operators.py` says which operators need none.
"""
