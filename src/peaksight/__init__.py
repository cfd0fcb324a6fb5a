"""See the memory peak of a deep-learning training run before the GPU does."""

__version__ = "0.1.0"
