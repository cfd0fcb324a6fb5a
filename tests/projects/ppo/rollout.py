"""What the agent lived through, kept on the card."""

import torch


class RolloutBuffer:
    def __init__(self, num_steps, env, device):
        steps = (num_steps, env.num_envs)
        self.obs = torch.zeros(steps + env.observation_shape, dtype=torch.uint8, device=device)
        self.actions = torch.zeros(steps, dtype=torch.long, device=device)
        self.log_probs, self.rewards, self.dones, self.values = (torch.zeros(steps, device=device) for _ in range(4))

    def insert(self, step, obs, action, log_prob, reward, done, value):
        self.obs[step] = obs
        self.actions[step] = action
        self.log_probs[step] = log_prob
        self.rewards[step] = reward
        self.dones[step] = done
        self.values[step] = value

    @torch.no_grad()
    def advantages(self, last_value, gamma, lam):
        """Generalized advantage estimates and returns, each (num_steps, num_envs)."""
        advantages = torch.zeros_like(self.rewards)
        running = 0
        for t in reversed(range(len(self.rewards))):
            following = last_value if t == len(self.rewards) - 1 else self.values[t + 1]
            alive = 1 - self.dones[t]
            delta = self.rewards[t] + gamma * following * alive - self.values[t]
            running = delta + gamma * lam * alive * running
            advantages[t] = running
        return advantages, advantages + self.values

    def minibatches(self, advantages, returns, batch_size):
        """Random parts of the rollout, each once."""
        whole = [x.flatten(0, 1) for x in (self.obs, self.actions, self.log_probs, advantages, returns)]
        for part in torch.randperm(len(whole[0]), device=self.obs.device).split(batch_size):
            yield [x[part] for x in whole]
