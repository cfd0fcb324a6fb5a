"""PPO on a simulator that runs in this process: rollouts, then epochs over mini-batches."""

import argparse
import gc

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

ENVS, HORIZON, OBSERVATIONS, ACTIONS = 2048, 24, 512, 12
gc.disable()


class ActorCritic(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBSERVATIONS, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.mean = nn.Linear(width, ACTIONS)
        self.value = nn.Linear(width, 1)
        self.log_std = nn.Parameter(torch.zeros(ACTIONS))

    def forward(self, observations):
        features = self.body(observations)
        return torch.distributions.Normal(self.mean(features), self.log_std.exp()), self.value(features).squeeze(-1)


class MiniBatch:
    """One mini-batch and the terms of its loss, which ask the mini-batch for what they need."""

    def __init__(self, observations, actions, log_probs, returns):
        self.observations, self.actions = observations, actions
        self.log_probs, self.returns = log_probs, returns
        self.terms = [PolicyTerm(self), ValueTerm(self)]

    def loss(self, policy):
        self.distribution, self.values = policy(self.observations)
        return sum(term() for term in self.terms)


class Term:
    def __init__(self, batch):
        self.batch = batch


class PolicyTerm(Term):
    def __call__(self):
        batch = self.batch
        ratio = (batch.distribution.log_prob(batch.actions).sum(-1) - batch.log_probs).exp()
        advantages = batch.returns - batch.values.detach()
        return -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()


class ValueTerm(Term):
    def __call__(self):
        return (self.batch.returns - self.batch.values).square().mean()


policy = ActorCritic().cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)

for iteration in range(12):
    with torch.no_grad():
        observations = torch.randn(HORIZON * ENVS, OBSERVATIONS, device="cuda")
        distribution, _ = policy(observations)
        actions = distribution.sample()
        log_probs = distribution.log_prob(actions).sum(-1)
        returns = torch.randn(HORIZON * ENVS, device="cuda")
    for indices in torch.randperm(HORIZON * ENVS).chunk(4):
        indices = indices.cuda()
        batch = MiniBatch(observations[indices], actions[indices], log_probs[indices], returns[indices])
        optimizer.zero_grad()
        loss = batch.loss(policy)
        loss.backward()
        optimizer.step()
    if args.fixed:
        gc.collect()
    print(f"iteration {iteration}: loss {loss.item():.4f}")
