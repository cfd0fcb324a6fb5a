"""Tensors of the virtual GPU: fake on the card, real on the host, and what is known of their values."""
