"""A GPT of GPT-2's size in Flax, trained with AdamW on random tokens; run as `python gpt.py --batch 8`."""

import argparse
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


class Block(nn.Module):
    num_heads: int

    @nn.compact
    def __call__(self, x):
        batch, length, width = x.shape
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        qkv = nn.Dense(3 * width, dtype=jnp.bfloat16, name="qkv")(h)
        q, k, v = (each.reshape(batch, length, self.num_heads, -1) for each in jnp.split(qkv, 3, axis=-1))
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + nn.Dense(width, dtype=jnp.bfloat16, name="out")(mixed.reshape(batch, length, width))
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        h = nn.gelu(nn.Dense(4 * width, dtype=jnp.bfloat16, name="up")(h))
        return x + nn.Dense(width, dtype=jnp.bfloat16, name="down")(h)


class GPT(nn.Module):
    vocab: int
    length: int
    width: int
    depth: int
    num_heads: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(self.vocab, self.width, name="embed")
        positions = self.param("positions", nn.initializers.normal(0.02), (self.length, self.width))
        x = (embed(tokens) + positions).astype(jnp.bfloat16)
        block = nn.remat(Block) if self.remat else Block
        for layer in range(self.depth):
            x = block(self.num_heads, name=f"block{layer}")(x)
        x = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        return embed.attend(x.astype(jnp.float32))


def loss_of(state, params, tokens):
    logits = state.apply_fn({"params": params}, tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@partial(jax.jit, donate_argnums=0)
def train_step(state, tokens):
    loss, grads = jax.value_and_grad(lambda params: loss_of(state, params, tokens))(state.params)
    return state.apply_gradients(grads=grads), loss


@jax.jit
def eval_step(state, tokens):
    return loss_of(state, state.params, tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocab", type=int, default=50257)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--remat", action="store_true")
    args = parser.parse_args()
    model = GPT(args.vocab, args.length, args.width, args.depth, args.heads, args.remat)
    tx = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 3e-4, 10, 100), weight_decay=0.1)

    @jax.jit
    def init_state(key):
        params = model.init(key, jnp.zeros((1, args.length), jnp.int32))["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    state = init_state(jax.random.key(0))
    rng = np.random.default_rng(0)
    for step in range(args.steps):
        tokens = rng.integers(0, args.vocab, (args.batch, args.length + 1), dtype=np.int32)
        state, loss = train_step(state, tokens)
        print(f"step {step} loss {loss:.3f}")
    tokens = rng.integers(0, args.vocab, (2 * args.batch, args.length + 1), dtype=np.int32)
    print(f"evaluation {float(eval_step(state, tokens)):.3f} after {int(state.step)} steps")


if __name__ == "__main__":
    main()
