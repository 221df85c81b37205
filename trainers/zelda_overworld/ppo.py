"""Proximal policy optimization: network, distribution over actions, memory of a rollout, learner."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import paceline
import torch
from arguments import Args
from emulator import ACTIONS
from environment import Observation
from observation import FACTS, STACK
from torch import nn
from torch.distributions import Categorical

SURE = 0.5
"""Probability above which an action counts as what the policy wants, and not as chance."""

LOUDNESS = 3.0
"""Factor by which the few facts are raised beside the many features of the pictures."""


class Network(nn.Module):
    """Three convolutions over the pictures and a hidden layer; the facts join before it and behind it."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.pictures = nn.Sequential(
            nn.Conv2d(STACK, 16, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        features = self.pictures(torch.zeros(1, STACK, rows, columns)).shape[1]
        self.hidden = nn.Sequential(nn.Linear(features + FACTS, 128), nn.ReLU())
        # Straight to the policy too: behind a thousand features of pictures, facts are learned late.
        self.policy = nn.Linear(128 + FACTS, ACTIONS)
        self.value = nn.Linear(128 + FACTS, 1)

    def forward(self, images: torch.Tensor, facts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of the actions, n x ACTIONS, and values, n."""
        facts = facts * LOUDNESS
        hidden = torch.cat([self.hidden(torch.cat([self.pictures(images), facts], dim=1)), facts], dim=1)
        return self.policy(hidden), self.value(hidden).squeeze(1)


class MinimalCategorical:
    """What PPO needs of a categorical distribution, by the same arithmetic as torch's, without its checks."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)

    def sample(self) -> torch.Tensor:
        return torch.multinomial(nn.functional.softmax(self.logits, dim=-1), 1, True).squeeze(-1)

    def log_prob(self, actions: torch.Tensor) -> torch.Tensor:
        return self.logits.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> torch.Tensor:
        # Only here, after log_prob: gradients are summed in the order of the operations.
        return -(self.logits * nn.functional.softmax(self.logits, dim=-1)).sum(-1)


class Choice(NamedTuple):
    """For each environment: the action, its log-probability, the value of the observation. On the CPU."""

    actions: torch.Tensor
    log_probs: torch.Tensor
    values: torch.Tensor


class Batch(NamedTuple):
    """Decisions to learn from, on the device."""

    images: torch.Tensor
    facts: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class Rollout:
    """The decisions between two updates, `size` of them, taken in turn by `count` environments."""

    def __init__(self, size: int, count: int, rows: int, columns: int, device: torch.device) -> None:
        self.count = count
        self.images = torch.zeros(size, STACK, rows, columns, device=device)
        self.facts = torch.zeros(size, FACTS, device=device)
        self.actions = torch.zeros(size, dtype=torch.int64)
        self.log_probs = torch.zeros(size)
        self.values = torch.zeros(size + count)
        self.rewards = torch.zeros(size)
        self.ends = torch.zeros(size)

    def put(self, at: int, images: torch.Tensor, facts: torch.Tensor, choice: Choice) -> None:
        """Keep what was seen and chosen, from place `at` on, one for each environment."""
        here = slice(at, at + self.count)
        self.images[here] = images
        self.facts[here] = facts
        self.actions[here], self.log_probs[here], self.values[here] = choice

    def judge(self, at: int, reward: float, ended: bool) -> None:
        """Keep what one decision led to."""
        self.rewards[at] = reward
        self.ends[at] = float(ended)


def advantages_in_a_loop(rollout: Rollout, discount: float, smoothing: float) -> torch.Tensor:
    """Generalized advantage estimates, decision by decision, on tensors."""
    size, count = len(rollout.rewards), rollout.count
    found = torch.zeros(size)
    for environment in range(count):
        last = torch.zeros(())
        for at in reversed(range(environment, size, count)):
            goes_on = 1.0 - rollout.ends[at]
            ahead = rollout.values[at + count]
            error = rollout.rewards[at] + discount * ahead * goes_on - rollout.values[at]
            last = error + discount * smoothing * goes_on * last
            found[at] = last
    return found


def advantages_batched(rollout: Rollout, discount: float, smoothing: float) -> torch.Tensor:
    """The same, bit by bit: all errors at once, then one pass over the rows of all environments."""
    size, count = len(rollout.rewards), rollout.count
    goes_on = 1.0 - rollout.ends
    errors = rollout.rewards + discount * rollout.values[count:] * goes_on - rollout.values[:size]
    rows = errors.reshape(-1, count).numpy()
    fading = (discount * smoothing * goes_on).reshape(-1, count).numpy()
    found = np.zeros_like(rows)
    last = np.zeros(count, dtype=np.float32)
    for at in range(len(rows) - 1, -1, -1):
        last = rows[at] + fading[at] * last
        found[at] = last
    return torch.from_numpy(found).reshape(-1)


class Learner:
    """The network with its optimizer: chooses actions, and learns from rollouts."""

    def __init__(self, args: Args, rows: int, columns: int, device: torch.device) -> None:
        self.args = args
        self.device = device
        self.layout = torch.channels_last if args.channels_last else torch.contiguous_format
        self.network = self._network(rows, columns)
        self.actor = self.network
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=args.learning_rate, eps=1e-5)
        # A generator of its own: what is drawn here must not depend on what acting draws meanwhile.
        self.chance = torch.Generator().manual_seed(int(args.seed or 0))
        # New memory for five megabytes of pictures is zeroed by the kernel first, page by page.
        self.batch: Batch | None = None
        self.distribution: Any = MinimalCategorical if args.categorical else Categorical

    def _network(self, rows: int, columns: int) -> Network:
        network: Any = Network(rows, columns)
        return network.to(device=self.device, memory_format=self.layout)

    def separate(self, rows: int, columns: int) -> None:
        """Act with a copy from now on, so that the network can learn at the same time."""
        self.actor = self._network(rows, columns)
        self.publish()

    def publish(self) -> None:
        """Let the copy that acts know what was learned."""
        self.actor.load_state_dict(self.network.state_dict())

    def precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.args.bf16 else nullcontext()

    def see(self, observations: list[Observation]) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations as one batch on the device; its copies are pinned, so that nothing waits for them."""
        images = torch.stack([observation.image for observation in observations])
        facts = torch.stack([observation.facts for observation in observations])
        if self.device.type == "cuda":
            images, facts = images.pin_memory(), facts.pin_memory()
        images = images.to(self.device, non_blocking=True, memory_format=self.layout)
        return images, facts.to(self.device, non_blocking=True)

    def forward(self, network: Network, images: torch.Tensor, facts: torch.Tensor) -> Any:
        """Logits and values, in float32 whatever the precision inside."""
        with self.precision():
            logits, values = network(images, facts)
        return logits.float(), values.float()

    @torch.no_grad()
    def choose(self, images: torch.Tensor, facts: torch.Tensor) -> Choice:
        """Draw an action for each environment."""
        with paceline.phase("forward"):
            logits, values = self.forward(self.actor, images, facts)
        with paceline.phase("distribution"):
            # Drawn on the CPU, so that one path's numbers don't depend on the other's generator.
            distribution = self.distribution(logits=logits.cpu())
            actions = distribution.sample()
            return Choice(actions, distribution.log_prob(actions), values.cpu())

    @torch.no_grad()
    def finish(self, rollout: Rollout, images: torch.Tensor, facts: torch.Tensor) -> None:
        """Add the values of what was seen last, from which the estimates start."""
        rollout.values[len(rollout.rewards) :] = self.forward(self.actor, images, facts)[1].cpu()

    def learn(self, rollout: Rollout) -> None:
        """Learn every decision of a rollout `epochs` times."""
        size = len(rollout.rewards)
        self._report(rollout)
        with paceline.phase("advantages"):
            estimate = advantages_batched if self.args.gae else advantages_in_a_loop
            advantages = estimate(rollout, self.args.discount, self.args.smoothing)
            parts = self._parts(rollout, advantages, advantages + rollout.values[:size])
        for _ in range(self.args.epochs):
            order = torch.randperm(size, generator=self.chance).to(self.device)
            for places in order.split(self.args.minibatch):
                with paceline.phase("gather"):
                    batch = self._gather(parts, places)
                self._update(batch)

    def _report(self, rollout: Rollout) -> None:
        """Say how far the policy is from chance, whose entropy is log(ACTIONS), 2.08, and what it earns."""
        paceline.gauge("reward", float(rollout.rewards.mean()))
        paceline.gauge("entropy", -float(rollout.log_probs.mean()))
        paceline.gauge("sure", float((rollout.log_probs.exp() > SURE).float().mean()))

    def _gather(self, parts: Batch, places: torch.Tensor) -> Batch:
        """The decisions at these places; with `gather` in memory that the next batch takes over."""
        if not self.args.gather:
            return Batch(*(part[places] for part in parts))
        if self.batch is None:
            self.batch = Batch(*(torch.empty_like(part[: self.args.minibatch]) for part in parts))
        kept = Batch(*(buffer[: len(places)] for buffer in self.batch))
        for part, buffer in zip(parts, kept, strict=True):
            torch.index_select(part, 0, places, out=buffer)
        return kept

    def _parts(self, rollout: Rollout, advantages: torch.Tensor, returns: torch.Tensor) -> Batch:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        numbers = (rollout.actions, rollout.log_probs, advantages, returns)
        return Batch(rollout.images, rollout.facts, *(part.to(self.device) for part in numbers))

    def _update(self, batch: Batch) -> None:
        """One step of the optimizer."""
        with paceline.phase("forward"):
            loss = self._loss(batch)
        with paceline.phase("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with paceline.phase("optimizer"):
            nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
            self.optimizer.step()

    def _loss(self, batch: Batch) -> torch.Tensor:
        images = batch.images.contiguous(memory_format=self.layout)
        logits, values = self.forward(self.network, images, batch.facts)
        distribution = self.distribution(logits=logits)
        ratio = (distribution.log_prob(batch.actions) - batch.log_probs).exp()
        clipped = ratio.clamp(1 - self.args.clip, 1 + self.args.clip)
        gain = torch.min(ratio * batch.advantages, clipped * batch.advantages).mean()
        value_loss = nn.functional.mse_loss(values, batch.returns)
        return 0.5 * value_loss - gain - self.args.entropy * distribution.entropy().mean()

    def state(self) -> dict[str, Any]:
        """Networks, optimizer and chance, for a checkpoint."""
        return {
            "network": self.network.state_dict(),
            "actor": self.actor.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "chance": self.chance.get_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.network.load_state_dict(state["network"])
        self.actor.load_state_dict(state["actor"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.chance.set_state(state["chance"])

    def fingerprint(self) -> str:
        """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
        digest = hashlib.sha256()
        for parameter in self.network.parameters():
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()
