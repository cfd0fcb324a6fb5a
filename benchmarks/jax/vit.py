"""A ViT-B/16 in Equinox, trained with AdamW on random images; run as `python vit.py --batch 64`."""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, num_heads, key):
        keys = jax.random.split(key, 3)
        self.norm1 = eqx.nn.LayerNorm(width)
        self.norm2 = eqx.nn.LayerNorm(width)
        self.attention = eqx.nn.MultiheadAttention(num_heads, width, key=keys[0])
        self.up = eqx.nn.Linear(width, 4 * width, key=keys[1])
        self.down = eqx.nn.Linear(4 * width, width, key=keys[2])

    def __call__(self, x):
        h = jax.vmap(self.norm1)(x)
        x = x + self.attention(h, h, h)
        h = jax.vmap(self.norm2)(x)
        return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(h)))


class ViT(eqx.Module):
    patch: eqx.nn.Conv2d
    token: jax.Array
    positions: jax.Array
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, width, depth, num_heads, key):
        keys = jax.random.split(key, depth + 3)
        self.patch = eqx.nn.Conv2d(3, width, 16, stride=16, key=keys[0])
        self.token = jnp.zeros((1, width))
        self.positions = 0.02 * jax.random.normal(keys[1], (197, width))
        self.blocks = [Block(width, num_heads, key) for key in keys[3:]]
        self.norm = eqx.nn.LayerNorm(width)
        self.head = eqx.nn.Linear(width, 1000, key=keys[2])

    def __call__(self, image):
        patches = self.patch(image)
        x = jnp.concatenate([self.token, patches.reshape(patches.shape[0], -1).T]) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[0]))


def loss_of(model, images, labels):
    logits = jax.vmap(model)(images)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    tx = optax.adamw(1e-3)

    @eqx.filter_jit
    def create(key):
        model = ViT(args.width, args.depth, args.heads, key)
        return model, tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit(donate="all-except-first")
    def train_step(batch, model, opt_state):
        loss, grads = eqx.filter_value_and_grad(loss_of)(model, *batch)
        updates, opt_state = tx.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    @eqx.filter_jit
    def evaluate(model, images, labels):
        return jnp.mean(jnp.argmax(jax.vmap(model)(images), -1) == labels)

    model, opt_state = create(jax.random.key(0))
    rng = np.random.default_rng(0)

    def batch_of(size):
        images = rng.standard_normal((size, 3, 224, 224), dtype=np.float32)
        return jnp.asarray(images), jnp.asarray(rng.integers(0, 1000, size, dtype=np.int32))

    for step in range(args.steps):
        model, opt_state, loss = train_step(batch_of(args.batch), model, opt_state)
        print(f"step {step} loss {loss:.3f}")
    print(f"accuracy {float(evaluate(model, *batch_of(args.batch))):.3f}")


if __name__ == "__main__":
    main()
