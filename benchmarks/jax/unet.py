"""A diffusion U-Net in Equinox, trained with Adam and an average of its weights; run as `python unet.py --batch 32`."""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Residual(eqx.Module):
    norm1: eqx.nn.GroupNorm
    norm2: eqx.nn.GroupNorm
    conv1: eqx.nn.Conv2d
    conv2: eqx.nn.Conv2d
    time: eqx.nn.Linear
    skip: eqx.nn.Conv2d

    def __init__(self, inner, outer, width, key):
        keys = jax.random.split(key, 4)
        self.norm1 = eqx.nn.GroupNorm(32, inner)
        self.norm2 = eqx.nn.GroupNorm(32, outer)
        self.conv1 = eqx.nn.Conv2d(inner, outer, 3, padding=1, key=keys[0])
        self.conv2 = eqx.nn.Conv2d(outer, outer, 3, padding=1, key=keys[1])
        self.time = eqx.nn.Linear(width, outer, key=keys[2])
        self.skip = eqx.nn.Conv2d(inner, outer, 1, key=keys[3])

    def __call__(self, x, t):
        h = self.conv1(jax.nn.silu(self.norm1(x))) + self.time(jax.nn.silu(t))[:, None, None]
        return self.skip(x) + self.conv2(jax.nn.silu(self.norm2(h)))


class Attention(eqx.Module):
    norm: eqx.nn.GroupNorm
    mix: eqx.nn.MultiheadAttention

    def __init__(self, width, key):
        self.norm = eqx.nn.GroupNorm(32, width)
        self.mix = eqx.nn.MultiheadAttention(4, width, key=key)

    def __call__(self, x):
        tokens = self.norm(x).reshape(x.shape[0], -1).T
        return x + self.mix(tokens, tokens, tokens).T.reshape(x.shape)


class UNet(eqx.Module):
    embed: eqx.nn.MLP
    first: eqx.nn.Conv2d
    downs: list[Residual]
    middle: tuple[Residual, Attention, Residual]
    ups: list[Residual]
    norm: eqx.nn.GroupNorm
    last: eqx.nn.Conv2d

    def __init__(self, width, key):
        keys = iter(jax.random.split(key, 16))
        inner = 4 * width
        self.embed = eqx.nn.MLP(width, inner, inner, 1, jax.nn.silu, key=next(keys))
        self.first = eqx.nn.Conv2d(3, width, 3, padding=1, key=next(keys))
        sizes = [width, width, 2 * width, 4 * width]
        self.downs = [Residual(a, b, inner, next(keys)) for a, b in zip(sizes, sizes[1:], strict=False)]
        bottom = sizes[-1]
        self.middle = (
            Residual(bottom, bottom, inner, next(keys)),
            Attention(bottom, next(keys)),
            Residual(bottom, bottom, inner, next(keys)),
        )
        self.ups = [
            Residual(a + b, c, inner, next(keys))
            for a, b, c in zip([bottom, 2 * width, width], sizes[:0:-1], [2 * width, width, width], strict=True)
        ]
        self.norm = eqx.nn.GroupNorm(32, width)
        self.last = eqx.nn.Conv2d(width, 3, 3, padding=1, key=next(keys))

    def __call__(self, x, t):
        half = self.embed.in_size // 2
        angles = t * jnp.exp(-jnp.log(1e4) * jnp.arange(half) / half)
        t = self.embed(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)]))
        x, kept = self.first(x), []
        for down in self.downs:
            x = down(x, t)
            kept.append(x)
            x = eqx.nn.AvgPool2d(2, 2)(x)
        before, attention, after = self.middle
        x = after(attention(before(x, t)), t)
        for up in self.ups:
            x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2]), "nearest")
            x = up(jnp.concatenate([x, kept.pop()]), t)
        return self.last(jax.nn.silu(self.norm(x)))


def loss_of(model, images, key):
    keys = jax.random.split(key)
    t = jax.random.uniform(keys[0], (len(images),))
    noise = jax.random.normal(keys[1], images.shape)
    signal = jnp.cos(0.5 * jnp.pi * t)[:, None, None, None]
    noisy = signal * images + jnp.sqrt(1 - signal**2) * noise
    return jnp.mean((jax.vmap(model)(noisy, 1000 * t) - noise) ** 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-4))

    @eqx.filter_jit
    def create(key):
        model = UNet(args.width, key)
        return model, tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def train_step(model, average, opt_state, images, key):
        loss, grads = eqx.filter_value_and_grad(loss_of)(model, images, key)
        updates, opt_state = tx.update(grads, opt_state)
        model = eqx.apply_updates(model, updates)
        average = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b if eqx.is_inexact_array(a) else a, average, model)
        return model, average, opt_state, loss

    @eqx.filter_jit
    def denoise(model, x, t):
        return x - 0.02 * jax.vmap(model, (0, None))(x, t)

    key = jax.random.key(0)
    model, opt_state = create(key)
    average = model
    rng = np.random.default_rng(0)
    for step in range(args.steps):
        images = jnp.asarray(rng.standard_normal((args.batch, 3, args.size, args.size), dtype=np.float32))
        key, now = jax.random.split(key)
        model, average, opt_state, loss = train_step(model, average, opt_state, images, now)
        print(f"step {step} loss {loss:.3f}")
    x = jax.random.normal(key, (16, 3, args.size, args.size))
    for t in np.linspace(1000, 0, 5, dtype=np.float32):
        x = denoise(average, x, jnp.asarray(t))
    print(f"sampled {x.shape}")


if __name__ == "__main__":
    main()
