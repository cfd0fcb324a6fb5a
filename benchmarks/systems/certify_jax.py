"""`python -m benchmarks.systems.certify_jax` verifies pi0_dex at the small scale and writes certificates_jax.json.

Each pair trains from the same checkpoint on the same batches, for real, on the CPU. Compared are the loss, the norm of
the gradients, and of every weight that both have its value and its first moment, which is 0 where it is frozen.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import peaksight.jax
from peaksight.records.certificate import Certificate

HERE = Path(__file__).parent
CERTIFICATES = HERE / "certificates_jax.json"
SYSTEM = HERE.parents[1] / "examples" / "systems" / "pi0_dex"
NUM_STEPS = 2
BEFORE = ("--variant", "before")
# For each pair the words of the changed script, what is changed in its model, and the verdict that is right.
PAIRS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "note": (("--variant", "note"), {}, "bitwise"),
    "fixed": (("--variant", "fixed"), {}, "different"),
    "without the unread table": (BEFORE, {"hand_embedder": False}, "bitwise"),
    # Weights that are frozen are kept in bfloat16.
    "language model and images frozen": ((*BEFORE, "--freeze", "prefix"), {}, "different"),
}


def main() -> None:
    """Certify all pairs, and write what they came to."""
    found = {}
    for name, (words, _, right) in PAIRS.items():
        seen = certificate_of(name)
        found[name] = {"words": words, "expected": right, "verdict": seen.verdict, "reasons": seen.reasons}
        print(name, seen.verdict, *seen.reasons, flush=True)
    CERTIFICATES.write_text(json.dumps(found, indent=1) + "\n")


def certificate_of(pair: str) -> Certificate:
    """The certificate of one of `PAIRS`."""
    sys.path.insert(0, str(SYSTEM))
    import train

    words, changes, _ = PAIRS[pair]
    original, shapes, batch = training(train, BEFORE, {})
    changed, own_shapes, _ = training(train, words, changes)
    args = train.parser.parse_args(["--scale", "small"])
    frozen = jax.tree.map(lambda _: False, shapes)
    checkpoint = train.restore(train.config_of(args), frozen, False, jax.random.key(1))
    common = [name for name in names_of(shapes) if name in names_of(own_shapes)]
    return peaksight.jax.verify(
        lambda *given: picked(original(*given), common),
        lambda *given: picked(changed(*given), common),
        checkpoint,
        batch,
        jax.random.key(2),
    )


def training(train: Any, words: tuple[str, ...], changes: dict[str, Any]) -> tuple[Callable[..., Any], Any, Any]:
    """`NUM_STEPS` steps from a checkpoint as a function, with the shapes of its weights, and a batch."""
    args = train.parser.parse_args(["--scale", "small", "--batch", "2", *words])
    config = replace(train.config_of(args), **changes)
    frozen = train.frozen_of(config, args)
    init, step = train.make(config, frozen)

    def trained(checkpoint: Any, batch: Any, key: jax.Array) -> dict[str, Any]:
        given = named(checkpoint)
        own, structure = jax.tree.flatten(frozen)
        names = names_of(frozen)
        state = init(jax.tree.unflatten(structure, [given[name] for name in names]))
        for _ in range(NUM_STEPS):
            state, info = step(state, batch, key)
        (mu,) = [each.mu for each in jax.tree.leaves(state["opt_state"], is_leaf=is_adam) if is_adam(each)]
        moments = named(mu)
        wide = {name: leaf.astype(given[name].dtype) for name, leaf in named(state["params"]).items()}
        still = {name: moments.get(name, jnp.zeros_like(given[name])) for name, _ in zip(names, own, strict=True)}
        return {"info": info, "weights": wide, "moments": still}

    return trained, frozen, next(train.episodes(config, args.batch))


def is_adam(node: Any) -> bool:
    """Whether a node of the optimizer's state is that of Adam."""
    return hasattr(node, "mu")


def named(tree: Any) -> dict[str, Any]:
    """The leaves of `tree` by their paths."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def names_of(tree: Any) -> list[str]:
    """The paths of the leaves of `tree`, in its order."""
    return list(named(tree))


def picked(found: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What is compared: of weights and moments those of `names`."""
    return {key: each if key == "info" else {name: each[name] for name in names} for key, each in found.items()}


if __name__ == "__main__":
    main()
