"""A policy in the shapes of Pi0: an image encoder, a language model, and experts for actions that attend to it.

Weights are nested dicts of arrays with the layers of a stack along the first dimension; `shapes` has all of them.
"""

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Tree = Any


class Expert(NamedTuple):
    """The size of one transformer; `lora` is the rank of low-rank updates beside its weights, 0 without any."""

    width: int
    hidden: int
    lora: int = 0


GEMMA_2B, GEMMA_300M = Expert(2048, 16384), Expert(1024, 4096)
GEMMA_300M_LORA = Expert(1024, 4096, lora=32)


@dataclass
class Config:
    """The model: `hand` adds the second expert; `early_stop` and `unroll` are how the layers are run."""

    language: Expert = GEMMA_2B
    action: Expert = GEMMA_300M
    hand: Expert | None = GEMMA_300M_LORA
    layers: int = 18
    heads: int = 8
    head_dim: int = 256
    vocabulary: int = 257_152
    images: int = 3
    image_size: int = 224
    patch: int = 14
    encoder_width: int = 1152
    encoder_hidden: int = 4304
    encoder_layers: int = 27
    encoder_heads: int = 16
    state_dim: int = 32
    horizon: int = 20
    prompt: int = 48
    early_stop: bool = False
    unroll: bool = False
    hand_embedder: bool = True

    @property
    def patches(self) -> int:
        return (self.image_size // self.patch) ** 2


SMALL = Config(
    language=Expert(64, 128), action=Expert(32, 64), hand=Expert(32, 64, lora=4), layers=4, heads=2, head_dim=16,
    vocabulary=512, image_size=28, encoder_width=32, encoder_hidden=64, encoder_layers=2, encoder_heads=2, horizon=15,
    prompt=20,
)  # fmt: skip


def shapes(config: Config) -> Tree:
    """The shape of every weight."""
    language, action, encoder = config.language.width, config.action.width, config.encoder_width
    tree = {
        "img": {
            "patch": linear(3 * config.patch**2, encoder),
            "position": (config.patches, encoder),
            "blocks": encoder_block(config),
            "norm": {"scale": (encoder,), "bias": (encoder,)},
            "head": linear(encoder, language),
        },
        "llm": {
            "embedder": (config.vocabulary, language),
            "prefix": stack(config, config.language),
            "action": stack(config, config.action),
        },
        "state_in": linear(config.state_dim, action),
        "action_in": suffix(config, action),
    }
    if config.hand:
        tree["llm_hand"] = {"action": stack(config, config.hand)}
        if config.hand_embedder:
            tree["llm_hand"]["embedder"] = (config.vocabulary, config.hand.width)
        tree["hand_in"] = suffix(config, config.hand.width)
    return tree


def linear(inputs: int, outputs: int) -> Tree:
    return {"kernel": (inputs, outputs), "bias": (outputs,)}


def suffix(config: Config, width: int) -> Tree:
    """Actions and time in, velocities out."""
    return {
        "in": linear(config.state_dim, width),
        "time": linear(2 * width, width),
        "mix": linear(width, width),
        "out": linear(width, config.state_dim),
    }


def encoder_block(config: Config) -> Tree:
    depth, width, hidden = config.encoder_layers, config.encoder_width, config.encoder_hidden
    sizes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, hidden), "down": (hidden, width)}
    block = {name: {"kernel": (depth, *size), "bias": (depth, size[1])} for name, size in sizes.items()}
    return block | {name: {"scale": (depth, width), "bias": (depth, width)} for name in ("norm1", "norm2")}


def stack(config: Config, expert: Expert) -> Tree:
    """The layers of an expert: one key and one value head for all heads, and a gated MLP."""
    depth, width, hidden, heads, dim = config.layers, expert.width, expert.hidden, config.heads, config.head_dim
    weights = {
        "q": (heads, width, dim), "kv": (2, width, dim), "out": (heads, dim, width), "gate": (2, width, hidden),
        "down": (1, hidden, width),
    }  # fmt: skip
    tree: Tree = {name: (depth, *size) for name, size in weights.items()}
    if expert.lora:
        tree["lora"] = {
            name: {"a": (depth, groups, inputs, expert.lora), "b": (depth, groups, expert.lora, outputs)}
            for name, (groups, inputs, outputs) in weights.items()
        }
    return tree | {"norm1": (depth, width), "norm2": (depth, width), "norm": (width,)}


def dense(weights: Tree, x: jax.Array) -> jax.Array:
    return x @ weights["kernel"].astype(x.dtype) + weights["bias"].astype(x.dtype)


def layer_norm(weights: Tree, x: jax.Array) -> jax.Array:
    normed = jax.nn.standardize(x.astype(jnp.float32), epsilon=1e-6)
    return (normed * weights["scale"] + weights["bias"]).astype(x.dtype)


def rms_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    normed = wide * jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
    return (normed * (1 + scale)).astype(x.dtype)


# Of each projection: through its weights, and through the two halves of their low-rank update.
PROJECTIONS = {
    "q": ("btd,ndh->btnh", "btd,ndr->btnr", "btnr,nrh->btnh"),
    "kv": ("btd,cdh->cbth", "btd,cdr->cbtr", "cbtr,crh->cbth"),
    "out": ("btnh,nhd->btd", "btnh,nhr->btnr", "btnr,nrd->btd"),
    "gate": ("btd,cdf->cbtf", "btd,cdr->cbtr", "cbtr,crf->cbtf"),
    "down": ("cbtf,cfd->btd", "cbtf,cfr->cbtr", "cbtr,crd->btd"),
}


def project(layer: Tree, name: str, x: jax.Array) -> jax.Array:
    """`x` through the weights `name` of a layer, and through their low-rank update if they have one."""
    whole, down, up = PROJECTIONS[name]
    y = jnp.einsum(whole, x, layer[name].astype(x.dtype))
    if "lora" in layer:
        a, b = (layer["lora"][name][half].astype(x.dtype) for half in "ab")
        y = y + jnp.einsum(up, jnp.einsum(down, x, a), b)
    return y


def rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary position embedding of [batch, tokens, heads, dim]."""
    frequencies = 10_000.0 ** -(jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[:, None, None] * frequencies
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (first * jnp.cos(angles) - second * jnp.sin(angles), second * jnp.cos(angles) + first * jnp.sin(angles))
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def block(streams: list, layers: list, past: Tree, mask: jax.Array, positions: jax.Array) -> tuple[list, Tree]:
    """One layer: each stream has its own weights, and all attend to each other and to `past`, as `mask` allows."""
    normed = [rms_norm(layer["norm1"], x) for layer, x in zip(layers, streams, strict=True)]
    q = jnp.concatenate([project(w, "q", x) for w, x in zip(layers, normed, strict=True)], axis=1)
    kv = jnp.concatenate([project(w, "kv", x) for w, x in zip(layers, normed, strict=True)], axis=2)
    q = rotate(q, positions) * q.shape[-1] ** -0.5
    k, v = rotate(kv[0][:, :, None], positions)[:, :, 0], kv[1]
    if past is not None:
        k, v = (jnp.concatenate(pair, axis=1) for pair in zip(past, (k, v), strict=True))
    logits = jnp.einsum("btnh,bsh->bnts", q, k, preferred_element_type=jnp.float32)
    weights = jax.nn.softmax(jnp.where(mask, logits, -1e30)).astype(v.dtype)
    attended = jnp.einsum("bnts,bsh->btnh", weights, v)
    results, start = [], 0
    for layer, x in zip(layers, streams, strict=True):
        x = x + project(layer, "out", attended[:, start : start + x.shape[1]])
        gate, up = project(layer, "gate", rms_norm(layer["norm2"], x))
        x = x + project(layer, "down", (jax.nn.gelu(gate) * up)[None])
        results.append(x)
        start += x.shape[1]
    return results, (k, v)


def run(config: Config, streams: list, stacks: list, past: Tree, mask: jax.Array, first: int) -> tuple[list, Tree]:
    """All layers, of which only what goes from one to the next is saved: `streams` after them, keys and values."""
    positions = first + jnp.arange(sum(x.shape[1] for x in streams), dtype=jnp.float32)
    norms = [each["norm"] for each in stacks]
    layers = [{name: each[name] for name in each if name != "norm"} for each in stacks]

    @partial(jax.checkpoint, prevent_cse=False, policy=jax.checkpoint_policies.nothing_saveable)
    def one(streams, layer):
        return block(streams, *layer, mask, positions)

    streams, cache = in_turn(config, one, streams, (layers, past))
    return [rms_norm(norm, x) for norm, x in zip(norms, streams, strict=True)], cache


def in_turn(config: Config, one, carry: Tree, layers: Tree) -> tuple[Tree, Tree]:
    """`one` for each of the layers, as a loop of the program or one written out."""
    if not config.unroll:
        return jax.lax.scan(one, carry, layers)
    made = []
    for number in range(jax.tree.leaves(layers)[0].shape[0]):
        carry, each = one(carry, jax.tree.map(itemgetter(number), layers))
        made.append(each)
    return carry, jax.tree.map(lambda *each: jnp.stack(each), *made)


def encode(config: Config, weights: Tree, images: jax.Array) -> jax.Array:
    """Tokens of the language model for [batch, images, size, size, 3]."""
    batch, side, patch = images.shape[0], config.image_size // config.patch, config.patch
    cut = images.reshape(-1, side, patch, side, patch, 3).swapaxes(2, 3).reshape(-1, side * side, 3 * patch**2)
    x = dense(weights["patch"], cut.astype(jnp.bfloat16)) + weights["position"].astype(jnp.bfloat16)

    @partial(jax.checkpoint, prevent_cse=False, policy=jax.checkpoint_policies.nothing_saveable)
    def one(x, layer):
        shape = (*x.shape[:2], config.encoder_heads, -1)
        q, k, v = (each.reshape(shape) for each in jnp.split(dense(layer["qkv"], layer_norm(layer["norm1"], x)), 3, -1))
        logits = jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        attended = jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(logits).astype(v.dtype), v).reshape(x.shape)
        x = x + dense(layer["out"], attended)
        return x + dense(layer["down"], jax.nn.gelu(dense(layer["up"], layer_norm(layer["norm2"], x)))), None

    x, _ = in_turn(config, one, x, weights["blocks"])
    return dense(weights["head"], layer_norm(weights["norm"], x)).reshape(batch, -1, config.language.width)


def embed_suffix(weights: Tree, noisy: jax.Array, time: jax.Array) -> jax.Array:
    """Tokens of noisy actions, each mixed with the time of the flow."""
    actions = dense(weights["in"], noisy.astype(jnp.bfloat16))
    width = actions.shape[-1]
    periods = 4e-3 * 1e3 ** jnp.linspace(0, 1, width // 2)
    angles = 2 * jnp.pi * time[:, None] / periods
    waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)[:, None].astype(jnp.bfloat16)
    mixed = jnp.concatenate([actions, jnp.broadcast_to(waves, actions.shape)], axis=-1)
    return dense(weights["mix"], jax.nn.silu(dense(weights["time"], mixed)))


def velocities(config: Config, params: Tree, batch: Tree, noisy: jax.Array, time: jax.Array) -> jax.Array:
    """What the policy thinks leads from noise to the actions.

    With a second expert the language model runs first, alone, and that expert attends to its keys and values; without
    one it and the action expert run jointly.
    """
    llm = params["llm"]
    words = llm["embedder"][batch["prompt"]].astype(jnp.bfloat16) * config.language.width**0.5
    prefix = jnp.concatenate([encode(config, params["img"], batch["images"]), words], axis=1)
    head = params["hand_in"] if config.hand else params["action_in"]
    state = dense(params["state_in"], batch["state"].astype(jnp.bfloat16))[:, None]
    tokens = jnp.concatenate([state, embed_suffix(head, noisy, time)], axis=1)
    before, after = prefix.shape[1], tokens.shape[1]
    sees_all, sees_prefix = jnp.ones((after, before + after), bool), jnp.ones((before, before), bool)
    if config.hand:
        if config.early_stop:
            prefix = jax.lax.stop_gradient(prefix)
        _, cache = run(config, [prefix], [llm["prefix"]], None, sees_prefix, 0)
        cache = jax.lax.stop_gradient(cache)
        (result,), _ = run(config, [tokens], [params["llm_hand"]["action"]], cache, sees_all, before)
    else:
        mask = jnp.concatenate([jnp.pad(sees_prefix, ((0, 0), (0, after))), sees_all])
        (_, result), _ = run(config, [prefix, tokens], [llm["prefix"], llm["action"]], None, mask, 0)
    return dense(head["out"], result[:, 1:]).astype(jnp.float32)
