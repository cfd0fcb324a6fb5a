"""The network of the agent: a convolutional trunk with a head for actions and one for values."""

import torch
from torch import nn
from torch.distributions import Categorical


def layer_init(layer, std=2**0.5):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    def __init__(self, num_actions, width=512):
        super().__init__()
        self.trunk = nn.Sequential(
            layer_init(nn.Conv2d(3, 32, 8, stride=4)), nn.ReLU(),
            layer_init(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
            layer_init(nn.Conv2d(64, 64, 3)), nn.ReLU(),
            nn.Flatten(),
            layer_init(nn.Linear(64 * 4 * 4, width)), nn.ReLU(),
        )  # fmt: skip
        self.actor = layer_init(nn.Linear(width, num_actions), std=0.01)
        self.critic = layer_init(nn.Linear(width, 1), std=1.0)

    def value(self, obs):
        return self.critic(self.trunk(obs.float() / 255)).squeeze(-1)

    def forward(self, obs, action=None):
        """The action, its log probability, the entropy of the policy, the value."""
        hidden = self.trunk(obs.float() / 255)
        policy = Categorical(logits=self.actor(hidden))
        if action is None:
            action = policy.sample()
        return action, policy.log_prob(action), policy.entropy(), self.critic(hidden).squeeze(-1)

    @torch.no_grad()
    def act(self, obs):
        return self(obs)
