"""Scripts under JAX, what they took on a card, and what was predicted."""
