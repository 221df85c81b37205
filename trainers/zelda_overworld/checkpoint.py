"""Saves a training between two updates and goes on from there: learner, environments, chance, steps.

A run that goes on ends in the same parameters, bit by bit, as one that was never interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from arguments import Args
from benchmark_support.arguments import refuse
from benchmark_support.checkpoints import check_place, read_checkpoint, write_checkpoint
from environment import Environment, Observation
from ppo import Learner

BENCHMARK = "zelda_overworld"

NAME = "overworld_{}.pt"
"""A checkpoint's name in a folder; the document's is called overworld-full-game_2549760.pt."""

SAME = (
    "seed",
    "image",
    "rolling",
    "workers",
    "overlap",
    "small",
    "channels_last",
    "bf16",
    "rollout",
    "epochs",
    "minibatch",
    "learning_rate",
    "discount",
    "smoothing",
    "clip",
    "entropy",
    "game_steps",
)
"""Arguments that decide on the parameters a training ends in: a run goes on with the same ones only."""


class Progress(NamedTuple):
    """Where a training stands: steps taken, and what each environment shows."""

    steps: int
    observations: list[Observation]


class Checkpoints:
    """The file or folder that a training is saved to, and the one that it goes on from."""

    def __init__(self, args: Args) -> None:
        self.args = args
        self.folder = Path(args.save) if args.save and _is_folder(args.save) else None
        if self.folder is None:
            check_place(args.save)
        if args.save and args.total_steps % args.rollout:
            steps, rollout = args.total_steps, args.rollout
            refuse(f"--total-steps is {steps}, must be a multiple of --rollout, {rollout}, with --save")

    def resume(self, learner: Learner, environments: list[Environment]) -> Progress | None:
        """Take everything back to where the checkpoint was saved; None where there is none to go on from."""
        path = self._found()
        if path is None:
            return None
        state = read_checkpoint(str(path), BENCHMARK)
        self._check_arguments(path, state)
        try:
            return _restore(state, learner, environments)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            refuse(
                f"--resume is {str(path)!r}, which this version of the benchmark can't go on from: {error}"
            )

    def is_due(self, steps: int) -> bool:
        """Whether to save behind the update that ends with this step."""
        if not self.args.save:
            return False
        every, rollout = self.args.save_every, self.args.rollout
        return steps == self.args.total_steps or (every > 0 and steps // every > (steps - rollout) // every)

    def save(self, learner: Learner, environments: list[Environment], progress: Progress) -> None:
        """Write a checkpoint; nothing may learn or play meanwhile."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        path = Path(self.args.save) if self.folder is None else self.folder / NAME.format(progress.steps)
        write_checkpoint(
            str(path),
            BENCHMARK,
            {
                "args": {name: getattr(self.args, name) for name in SAME},
                "steps": progress.steps,
                "observations": [tuple(observation) for observation in progress.observations],
                "learner": learner.state(),
                "environments": [environment.state() for environment in environments],
                "chance": torch.get_rng_state(),
            },
        )
        print(f"saved: {path}", flush=True)

    def _found(self) -> Path | None:
        """The checkpoint to go on from; the newest of a folder."""
        if not self.args.resume:
            return None
        path = Path(self.args.resume)
        if path.is_file():
            return path
        # All of the same name but for the steps, so that the longest and last one is the newest.
        found = sorted(path.glob(NAME.format("[0-9]*")), key=lambda each: (len(each.name), each.name))
        if found:
            return found[-1]
        # The command that saves into a folder may be the one that goes on from it: at first there is nothing.
        if self.folder != path:
            refuse(f"--resume is {self.args.resume!r}, where there is no checkpoint")
        print(f"{path} holds no checkpoint yet: training begins", flush=True)
        return None

    def _check_arguments(self, path: Path, state: dict[str, Any]) -> None:
        for name in SAME:
            then, now = state["args"].get(name), getattr(self.args, name)
            if then != now:
                flag = "--" + name.replace("_", "-")
                refuse(f"--resume is {str(path)!r}, whose training has {flag} {then}, and this one {now}")
        if state["steps"] > self.args.total_steps:
            refuse(f"--total-steps is {self.args.total_steps}, the checkpoint has {state['steps']} already")


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() or not Path(path).suffix


def _restore(state: dict[str, Any], learner: Learner, environments: list[Environment]) -> Progress:
    learner.restore(state["learner"])
    for environment, saved in zip(environments, state["environments"], strict=True):
        environment.restore(saved)
    torch.set_rng_state(state["chance"])
    return Progress(state["steps"], [Observation(*saved) for saved in state["observations"]])
