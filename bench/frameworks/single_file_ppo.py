"""PPO in one file, as CleanRL has it, on a vector environment of gymnasium."""

from __future__ import annotations

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical

STEPS, UPDATES = 8, 2

torch.manual_seed(0)
environments = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], eps=1e-5)
seen = torch.as_tensor(environments.reset(seed=0)[0])
for _iteration in range(1_000_000):
    observations, actions, logs, rewards = [], [], [], []
    for _step in range(STEPS):
        with torch.no_grad():
            distribution = Categorical(logits=actor(seen))
            action = distribution.sample()
            logs.append(distribution.log_prob(action))
        observations.append(seen)
        actions.append(action)
        found, reward, *_ = environments.step(action.numpy())
        seen = torch.as_tensor(found)
        rewards.append(torch.as_tensor(reward, dtype=torch.float32))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    for _update in range(UPDATES):
        values = critic(torch.stack(observations)).squeeze(-1)
        distribution = Categorical(logits=actor(torch.stack(observations)))
        ratio = (distribution.log_prob(torch.stack(actions)) - torch.stack(logs)).exp()
        advantage = (returns - values).detach()
        loss = -(ratio * advantage).mean() + (returns - values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
        optimizer.step()
