"""Reinforcement learning with a clipped objective: rollouts kept on the card, then epochs of small batches over them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

NUM_ENVS, STEPS, EPOCHS, PARTS = 256, 64, 4, 8


class Agent(nn.Module):
    def __init__(self, actions=18):
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
        )
        self.act, self.value = nn.Linear(512, actions), nn.Linear(512, 1)

    def forward(self, frames):
        seen = self.see(frames.float() / 255)
        return Categorical(logits=self.act(seen)), self.value(seen).squeeze(-1)


torch.manual_seed(0)
agent = Agent().cuda()
optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4, eps=1e-5)
frames = torch.zeros(STEPS, NUM_ENVS, 4, 84, 84, dtype=torch.uint8, device="cuda")
actions = torch.zeros(STEPS, NUM_ENVS, dtype=torch.long, device="cuda")
logs, values, rewards = (torch.zeros(STEPS, NUM_ENVS, device="cuda") for _ in range(3))

for _ in range(2):
    for step in range(STEPS):
        frames[step] = torch.randint(0, 255, (NUM_ENVS, 4, 84, 84), dtype=torch.uint8).cuda()
        with torch.no_grad():
            policy, value = agent(frames[step])
        action = policy.sample()
        actions[step], logs[step], values[step] = action, policy.log_prob(action), value
        rewards[step] = torch.randn(NUM_ENVS).cuda()
    advantages = torch.zeros_like(rewards)
    last = torch.zeros(NUM_ENVS, device="cuda")
    for step in reversed(range(STEPS)):
        following = values[step + 1] if step + 1 < STEPS else values[step]
        last = rewards[step] + 0.99 * following - values[step] + 0.99 * 0.95 * last
        advantages[step] = last
    returns = advantages + values
    flat = [t.flatten(0, 1) for t in (frames, actions, logs, advantages, returns)]
    for _ in range(EPOCHS):
        for part in torch.randperm(STEPS * NUM_ENVS).cuda().chunk(PARTS):
            seen, did, old, advantage, wanted = (t[part] for t in flat)
            policy, value = agent(seen)
            ratio = (policy.log_prob(did) - old).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            gain = torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
            loss = 0.5 * F.mse_loss(value, wanted) - gain - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print("loss", loss.item(), flush=True)
