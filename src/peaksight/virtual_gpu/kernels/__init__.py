"""What the card runs: kernel choice, and memory that kernels take without returning it."""
