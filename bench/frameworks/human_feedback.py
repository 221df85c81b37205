"""Reinforcement learning of a language model as TRL does it: generate, reward, several updates."""

from __future__ import annotations

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

UPDATES = 3

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=32, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=31
)
policy, reference = GPT2LMHeadModel(config), GPT2LMHeadModel(config).eval()
reward_model = nn.Linear(32, 1)
optimizer = torch.optim.AdamW(policy.parameters())


def log_probabilities(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Return how likely the model finds each token."""
    found = torch.log_softmax(model(input_ids=tokens).logits[:, :-1], -1)
    return found.gather(-1, tokens[:, 1:, None]).squeeze(-1)


for _rollout in range(1_000_000):
    prompts = torch.randint(1, 30, (4, 4))
    with torch.no_grad():
        tokens = policy.generate(prompts, do_sample=True, max_new_tokens=8, min_new_tokens=8, pad_token_id=0)
        before, wanted = log_probabilities(policy, tokens), log_probabilities(reference, tokens)
        reward = reward_model(nn.functional.one_hot(tokens, 32).float().mean(1))
    for _update in range(UPDATES):
        now = log_probabilities(policy, tokens)
        gain = (now - before).exp() * (reward - reward.mean()) - 0.1 * (now - wanted)
        optimizer.zero_grad()
        (-gain.mean()).backward()
        optimizer.step()
