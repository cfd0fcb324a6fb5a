"""A world in latent states (Dreamer): categorical codes through a GRU cell, pictures decoded, then dreams that train an actor."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Independent, OneHotCategoricalStraightThrough, kl_divergence

BATCH, TIME, DETER, GROUPS, CLASSES, ACTIONS, HORIZON = 16, 50, 512, 32, 32, 6, 15
STATE = DETER + GROUPS * CLASSES


def mlp(a, b, width=512, depth=3):
    layers = []
    for n in range(depth):
        layers += [nn.Linear(a if n == 0 else width, width, bias=False), nn.LayerNorm(width), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, b))


class World(nn.Module):
    def __init__(self):
        super().__init__()
        eyes, a = [], 3
        for width in (48, 96, 192, 384):
            eyes += [nn.Conv2d(a, width, 4, 2, 1, bias=False), nn.GroupNorm(1, width), nn.SiLU()]
            a = width
        self.eyes, self.start = nn.Sequential(*eyes, nn.Flatten()), nn.Linear(STATE, 384 * 16)
        hands = []
        for width in (192, 96, 48):
            hands += [nn.ConvTranspose2d(a, width, 4, 2, 1, bias=False), nn.GroupNorm(1, width), nn.SiLU()]
            a = width
        self.hands = nn.Sequential(*hands, nn.ConvTranspose2d(a, 3, 4, 2, 1))
        self.before, self.cell = mlp(GROUPS * CLASSES + ACTIONS, DETER, depth=1), nn.GRUCell(DETER, DETER)
        self.prior, self.posterior = mlp(DETER, GROUPS * CLASSES, depth=1), mlp(DETER + 384 * 16, GROUPS * CLASSES, depth=1)
        self.reward, self.going = mlp(STATE, 255), mlp(STATE, 1)

    @staticmethod
    def codes(logits):
        probabilities = 0.99 * logits.view(len(logits), GROUPS, CLASSES).softmax(-1) + 0.01 / CLASSES
        return Independent(OneHotCategoricalStraightThrough(probs=probabilities), 1)

    def ahead(self, deter, code, action):
        return self.cell(self.before(torch.cat([code, action], 1)), deter)

    def decode(self, states):
        return self.hands(self.start(states).view(-1, 384, 4, 4))


def observe(world, frames, actions):
    seen = world.eyes(frames.flatten(0, 1)).view(BATCH, TIME, -1)
    deter, code = (torch.zeros(BATCH, n, device="cuda") for n in (DETER, GROUPS * CLASSES))
    states, divergence = [], 0
    for t in range(TIME):
        deter = world.ahead(deter, code, actions[:, t])
        prior, posterior = world.codes(world.prior(deter)), world.codes(world.posterior(torch.cat([deter, seen[:, t]], 1)))
        code = posterior.rsample().flatten(1)
        states.append(torch.cat([deter, code], 1))
        divergence = divergence + kl_divergence(posterior, prior).clamp(min=1).mean()
    return torch.stack(states, 1), divergence / TIME


torch.manual_seed(0)
world, actor, critic = World().cuda(), mlp(STATE, ACTIONS).cuda(), mlp(STATE, 255).cuda()
of_world, of_actor, of_critic = (torch.optim.Adam(m.parameters(), 1e-4, eps=1e-8) for m in (world, actor, critic))
bins = torch.linspace(-20, 20, 255, device="cuda")


def twohot(x):
    x = x.clamp(-20, 20)
    below = (bins <= x[..., None]).sum(-1) - 1
    above = (below + 1).clamp(max=254)
    weight = (x - bins[below]) / (bins[1] - bins[0])
    return F.one_hot(below, 255) * (1 - weight)[..., None] + F.one_hot(above, 255) * weight[..., None]


for _ in range(3):
    frames = torch.rand(BATCH, TIME, 3, 64, 64).cuda()
    actions = F.one_hot(torch.randint(0, ACTIONS, (BATCH, TIME)), ACTIONS).float().cuda()
    rewards, going = torch.randn(BATCH, TIME).cuda(), torch.ones(BATCH, TIME).cuda()
    states, divergence = observe(world, frames, actions)
    flat = states.flatten(0, 1)
    loss = (world.decode(flat) - frames.flatten(0, 1)).square().sum((1, 2, 3)).mean() + divergence
    loss = loss - (twohot(rewards).flatten(0, 1) * world.reward(flat).log_softmax(-1)).sum(-1).mean()
    loss = loss + F.binary_cross_entropy_with_logits(world.going(flat).squeeze(1), going.flatten())
    of_world.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(world.parameters(), 1000)
    of_world.step()

    state, dreamt, logs = flat.detach(), [], []
    for _ in range(HORIZON):
        policy = torch.distributions.OneHotCategorical(logits=actor(state.detach()))
        action = policy.sample()
        logs.append(policy.log_prob(action))
        with torch.no_grad():
            deter = world.ahead(state[:, :DETER], state[:, DETER:], action)
            state = torch.cat([deter, world.codes(world.prior(deter)).sample().flatten(1)], 1)
        dreamt.append(state)
    dreamt = torch.stack(dreamt)
    with torch.no_grad():
        reward = world.reward(dreamt).softmax(-1) @ bins
        value = critic(dreamt).softmax(-1) @ bins
        returns, last = [], value[-1]
        for t in reversed(range(HORIZON)):
            last = reward[t] + 0.997 * (0.05 * value[t] + 0.95 * last)
            returns.append(last)
        returns = torch.stack(returns[::-1])
        scale = torch.quantile(returns[:, ::4], 0.95) - torch.quantile(returns[:, ::4], 0.05)
    gain = (-(torch.stack(logs) * ((returns - value) / scale.clamp(min=1)))).mean()
    of_actor.zero_grad()
    gain.backward()
    of_actor.step()
    error = -(twohot(returns) * critic(dreamt).log_softmax(-1)).sum(-1).mean()
    of_critic.zero_grad()
    error.backward()
    of_critic.step()
    print("loss", loss.item(), gain.item(), error.item(), flush=True)
