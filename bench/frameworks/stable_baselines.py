"""PPO of Stable-Baselines3 on four environments in a vector environment of its own."""

from __future__ import annotations

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

environments = make_vec_env("CartPole-v1", n_envs=4, seed=0)
PPO("MlpPolicy", environments, n_steps=8, batch_size=16, n_epochs=2, seed=0, device="cpu").learn(10_000_000)
