"""Blocks in a scan, whose step donates nothing; with --old it reads the state of the step before."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH, BLOCKS = 256, 8
tx = optax.adamw(1e-3)


@jax.jit
def init(key):
    params = {"up": jax.random.normal(key, (BLOCKS, WIDTH, 4 * WIDTH)), "down": jnp.zeros((BLOCKS, 4 * WIDTH, WIDTH))}
    return {"params": params, "opt": tx.init(params)}


def loss_of(params, x):
    def block(x, of_block):
        return x + jax.nn.gelu(x @ of_block["up"]) @ of_block["down"], None

    return jnp.mean(jax.lax.scan(block, x, params)[0] ** 2)


@jax.jit
def train_step(state, x):
    loss, grads = jax.value_and_grad(loss_of)(state["params"], x)
    updates, opt = tx.update(grads, state["opt"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, loss


state = init(jax.random.key(0))
rng = np.random.default_rng(0)
for _ in range(2):
    before = state
    state, loss = train_step(state, rng.standard_normal((1024, WIDTH), dtype=np.float32))
    print(f"loss {loss:.3f}")
    if "--old" in sys.argv:
        print("moved by", float(jnp.linalg.norm(state["params"]["up"] - before["params"]["up"])))
