"""Jitted training programs of JAX: what they need, from their jaxpr and from XLA."""
