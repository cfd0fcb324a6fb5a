"""A Llama in Flax NNX, its layers scanned with remat in bfloat16; run as `python llama.py --batch 8`."""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

BF16 = jnp.bfloat16


def rotate(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 1e4 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None].astype(x.dtype), jnp.sin(angles)[:, None].astype(x.dtype)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


class Layer(nnx.Module):
    def __init__(self, width, hidden, heads, kv_heads, rngs):
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        dense = partial(nnx.Linear, use_bias=False, dtype=BF16, rngs=rngs)
        self.norm1 = nnx.RMSNorm(width, dtype=BF16, rngs=rngs)
        self.norm2 = nnx.RMSNorm(width, dtype=BF16, rngs=rngs)
        self.q, self.o = dense(width, width), dense(width, width)
        self.k, self.v = dense(width, kv_heads * self.size), dense(width, kv_heads * self.size)
        self.gate, self.up, self.down = dense(width, hidden), dense(width, hidden), dense(hidden, width)

    def __call__(self, x):
        batch, length, _ = x.shape
        h = self.norm1(x)
        q = rotate(self.q(h).reshape(batch, length, self.heads, self.size))
        k = rotate(self.k(h).reshape(batch, length, self.kv_heads, self.size))
        v = self.v(h).reshape(batch, length, self.kv_heads, self.size)
        x = x + self.o(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h))


class Llama(nnx.Module):
    def __init__(self, args, rngs):
        @nnx.split_rngs(splits=args.depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def layers(rngs):
            return Layer(args.width, args.hidden, args.heads, args.kv_heads, rngs)

        self.embed = nnx.Embed(args.vocab, args.width, dtype=BF16, rngs=rngs)
        self.layers = layers(rngs)
        self.norm = nnx.RMSNorm(args.width, dtype=BF16, rngs=rngs)
        self.head = nnx.Linear(args.width, args.vocab, use_bias=False, dtype=BF16, rngs=rngs)

    def __call__(self, tokens):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        @nnx.remat
        def forward(x, layer):
            return layer(x)

        return self.head(self.norm(forward(self.embed(tokens), self.layers)))


def loss_of(model, tokens):
    logits = model(tokens[:, :-1]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@nnx.jit(donate_argnums=(0, 1))
def train_step(model, optimizer, tokens):
    loss, grads = nnx.value_and_grad(loss_of)(model, tokens)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def evaluate(model, tokens):
    return loss_of(model, tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=2816)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()

    @nnx.jit
    def create():
        model = Llama(args, nnx.Rngs(0))
        tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.1))
        return model, nnx.Optimizer(model, tx, wrt=nnx.Param)

    model, optimizer = create()
    rng = np.random.default_rng(0)
    for step in range(args.steps):
        tokens = jnp.asarray(rng.integers(0, args.vocab, (args.batch, args.length + 1), dtype=np.int32))
        print(f"step {step} loss {train_step(model, optimizer, tokens):.3f}")
    print(f"evaluation {float(evaluate(model, tokens)):.3f}")


if __name__ == "__main__":
    main()
