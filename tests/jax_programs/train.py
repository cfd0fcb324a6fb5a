"""A script as people write them: init, steps, evaluation, with what a training loop reads and prints."""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
tx = optax.adamw(1e-3)


@jax.jit
def init(key):
    params = {"up": jax.random.normal(key, (WIDTH, 4 * WIDTH)), "down": jnp.zeros((4 * WIDTH, WIDTH))}
    return {"params": params, "opt": tx.init(params), "step": jnp.int32(0)}


def loss_of(params, x):
    return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"] - x) ** 2)


@partial(jax.jit, donate_argnums=0)
def train_step(state, x):
    loss, grads = jax.value_and_grad(loss_of)(state["params"], x)
    updates, opt = tx.update(grads, state["opt"], state["params"])
    params = optax.apply_updates(state["params"], updates)
    return {"params": params, "opt": opt, "step": state["step"] + 1}, loss


@jax.jit
def evaluate(params, x):
    return loss_of(params, x)


key = jax.random.key(0)
key, init_key = jax.random.split(key)
state = init(init_key)
rng = np.random.default_rng(0)
for _ in range(3):
    state, loss = train_step(state, rng.standard_normal((4096, WIDTH), dtype=np.float32))
    print(f"loss {loss:.3f} at step {int(state['step'])}")
if "--fail" in sys.argv:
    raise ValueError("as asked")
print("evaluation", float(evaluate(state["params"], jnp.ones((4096, WIDTH)))))
