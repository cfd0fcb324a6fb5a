"""Train a hand for a robot's policy, by flow matching: a second action expert on top of a frozen vision-language model.

    python train.py --variant note

Weights and episodes are made up, in the shapes of Pi0. `--variant` says how: `before` as the authors had it, `note`
with what their note changes, `fixed` with the filter that was meant, weights that are narrow before they come to the
card, and without a table that nothing reads. `--model base` is the policy without a hand, which trains all its weights.
"""

import argparse
import re
from dataclasses import replace
from functools import partial
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import optax
from model import SMALL, Config, Tree, shapes, velocities

parser = argparse.ArgumentParser()
parser.add_argument("--variant", choices=["before", "note", "fixed"], default="before")
parser.add_argument("--scale", choices=["full", "small"], default="full")
parser.add_argument("--model", choices=["dex", "base"], default="dex")
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument(
    "--freeze", choices=["filter", "prefix"], default="filter", help="prefix: language model and images"
)
parser.add_argument("--unroll", action="store_true", help="write the layers out instead of a scan")

FROZEN = ("^llm/", "^img/", "^llm_hand/")


def is_frozen(name: str, variant: str) -> bool:
    """Whether a weight stays as it was loaded."""
    matches = [re.search(pattern, name) is not None for pattern in FROZEN]
    matched = any(matches) if variant == "fixed" else all(matches)
    return matched and "lora" not in name


def name_of(path: tuple) -> str:
    return "/".join(key.key for key in path)


def config_of(args: argparse.Namespace) -> Config:
    config = SMALL if args.scale == "small" else Config()
    if args.model == "base":
        config = replace(config, hand=None)
    fixed = args.variant == "fixed"
    return replace(config, early_stop=args.variant == "note", unroll=args.unroll, hand_embedder=not fixed)


def frozen_of(config: Config, args: argparse.Namespace) -> Tree:
    """For each weight whether it is frozen."""

    def of(path: tuple, _) -> bool:
        name = name_of(path)
        if args.freeze == "prefix":
            return name.startswith(("llm/prefix", "llm/embedder", "img/"))
        return args.model == "dex" and is_frozen(name, args.variant)

    return jax.tree_util.tree_map_with_path(of, shapes(config), is_leaf=lambda x: isinstance(x, tuple))


def restore(config: Config, frozen: Tree, cast: bool, key: jax.Array) -> Tree:
    """Stands in for a checkpoint: seeded numbers, one weight after the other."""

    @partial(jax.jit, static_argnums=(0, 1))
    def draw(shape, dtype, key):
        scale = shape[-2] ** -0.5 if len(shape) > 1 else 0.0
        return (scale * jax.random.normal(key, shape, jnp.bfloat16)).astype(dtype)

    flat, structure = jax.tree.flatten(shapes(config), is_leaf=lambda x: isinstance(x, tuple))
    keys = jax.random.split(key, len(flat))
    dtypes = [jnp.bfloat16 if cast and each else jnp.float32 for each in jax.tree.leaves(frozen)]
    return jax.tree.unflatten(structure, [draw(*each) for each in zip(flat, dtypes, keys, strict=True)])


def split(params: Tree, frozen: Tree) -> tuple[Tree, Tree]:
    """What is trained, and what is not."""
    trained = jax.tree.map(lambda x, is_out: None if is_out else x, params, frozen)
    return trained, jax.tree.map(lambda x, is_out: x if is_out else None, params, frozen)


def join(trained: Tree, rest: Tree) -> Tree:
    return jax.tree.map(lambda a, b: b if a is None else a, trained, rest, is_leaf=lambda x: x is None)


def make(config: Config, frozen: Tree) -> tuple:
    """The functions that are jitted: `init(checkpoint)` and `train_step(state, batch, key)`."""
    rate = optax.warmup_cosine_decay_schedule(0.0, 2.5e-5, 1000, 30_000, 2.5e-6)
    adamw = optax.adamw(rate, b1=0.9, b2=0.95, eps=1e-8, weight_decay=1e-10)
    tx = optax.chain(optax.clip_by_global_norm(1.0), adamw)

    def init(checkpoint: Tree) -> Tree:
        params = jax.tree.map(lambda x, is_out: x.astype(jnp.bfloat16) if is_out else x, checkpoint, frozen)
        return {"params": params, "opt_state": tx.init(split(params, frozen)[0]), "step": jnp.int32(0)}

    def loss_of(trained: Tree, rest: Tree, batch: Tree, key: jax.Array) -> jax.Array:
        time_key, noise_key = jax.random.split(key)
        actions = batch["actions"]
        time = jax.random.uniform(time_key, actions.shape[:1]) ** (1 / 1.5) * 0.999 + 0.001
        noise = jax.random.normal(noise_key, actions.shape)
        noisy = time[:, None, None] * noise + (1 - time[:, None, None]) * actions
        found = velocities(config, join(trained, rest), batch, noisy, time)
        return jnp.mean((found - (noise - actions)) ** 2)

    def train_step(state: Tree, batch: Tree, key: jax.Array) -> tuple[Tree, Tree]:
        trained, rest = split(state["params"], frozen)
        loss, grads = jax.value_and_grad(loss_of)(trained, rest, batch, jax.random.fold_in(key, state["step"]))
        updates, opt_state = tx.update(grads, state["opt_state"], trained)
        params = join(optax.apply_updates(trained, updates), rest)
        info = {"loss": loss, "grad_norm": optax.global_norm(grads)}
        return {"params": params, "opt_state": opt_state, "step": state["step"] + 1}, info

    return init, train_step


def episodes(config: Config, batch: int):
    """Endless batches of images, prompt, state and actions."""
    draw = np.random.default_rng(0)
    size = config.image_size
    while True:
        yield {
            "images": draw.uniform(-1, 1, (batch, config.images, size, size, 3)).astype(np.float32),
            "prompt": draw.integers(0, config.vocabulary, (batch, config.prompt), dtype=np.int32),
            "state": draw.standard_normal((batch, config.state_dim), dtype=np.float32),
            "actions": draw.standard_normal((batch, config.horizon, config.state_dim), dtype=np.float32),
        }


def main() -> None:
    args = parser.parse_args()
    config = config_of(args)
    frozen = frozen_of(config, args)
    init, train_step = make(config, frozen)
    init, train_step = jax.jit(init, donate_argnums=0), jax.jit(train_step, donate_argnums=0)
    key, restore_key = jax.random.split(jax.random.key(0))
    state = init(restore(config, frozen, args.variant == "fixed", restore_key))
    for batch in islice(episodes(config, args.batch), args.steps):
        state, info = train_step(state, batch, key)
        print("step", int(state["step"]), "loss", float(info["loss"]), "norm", float(info["grad_norm"]))


if __name__ == "__main__":
    main()
