"""Proximal policy optimization: `python train.py --num-envs 16`."""

import argparse

import numpy as np
import torch
from env import ForagingEnv
from policy import Agent
from rollout import RolloutBuffer
from torch import nn


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, default=128)
    parser.add_argument("--num-steps", type=int, default=16)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--update-epochs", type=int, default=4)
    parser.add_argument("--minibatch-size", type=int, default=2048)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--target-kl", type=float, default=None)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env = ForagingEnv(args.num_envs)
    agent = Agent(env.num_actions).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    buffer = RolloutBuffer(args.num_steps, env, device)
    obs = torch.as_tensor(env.reset(), device=device)
    done = torch.zeros(args.num_envs, device=device)
    returns_seen = []
    for update in range(args.updates):
        optimizer.param_groups[0]["lr"] = 2.5e-4 * (1 - update / args.updates)
        for step in range(args.num_steps):
            action, log_prob, _, value = agent.act(obs)
            next_obs, reward, next_done = env.step(action.cpu().numpy())
            buffer.insert(step, obs, action, log_prob, torch.tensor(reward, device=device), done, value)
            obs, done = torch.as_tensor(next_obs, device=device), torch.tensor(next_done, device=device).float()
            returns_seen.append(reward.mean())
        with torch.no_grad():
            last_value = agent.value(obs)
        advantages, returns = buffer.advantages(last_value, args.gamma, args.gae_lambda)
        learn(agent, optimizer, buffer, advantages, returns, args)
        print(f"update {update}: mean reward {np.mean(returns_seen[-args.num_steps :]):.3f}")
    torch.save(agent.state_dict(), "agent.pt")


def learn(agent, optimizer, buffer, advantages, returns, args):
    clip_fractions = []
    for _ in range(args.update_epochs):
        for obs, actions, old_log_probs, advantage, target in buffer.minibatches(
            advantages, returns, args.minibatch_size
        ):
            _, log_prob, entropy, value = agent(obs, actions)
            ratio = (log_prob - old_log_probs).exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - (log_prob - old_log_probs)).mean()
                clip_fractions.append(((ratio - 1).abs() > args.clip).float().mean().item())
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - args.clip, 1 + args.clip)).mean()
            loss = loss + 0.5 * (value - target).pow(2).mean() - 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if args.target_kl is not None and approx_kl > args.target_kl:
            break


if __name__ == "__main__":
    main()
