"""PPO learns a small adventure on a game console. Read this file first.

The console is emulated (emulator.py) and runs a program of our own (program/). Its memory is read into a
model of the game (world.py, model.py), which critics judge (critics.py); environment.py puts these together,
ppo.py learns. There are three variants: `baseline`, `optimized`, which is what the engineers of such a loop
made of it, and `beyond`. Each optimization is one argument (arguments.py), so that any of them can be
switched alone: `python train.py --variant optimized --no-full-location`.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The benchmarks share a package that lies beside their folders.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import paceline
import torch
from arguments import Args, read_arguments
from benchmark_support.machine import AdaptedArguments, prepare_torch
from checkpoint import Checkpoints, Progress
from emulator import PICTURE, Emulator, MissingEmulatorError, Remote, Source
from environment import Environment
from policies import trained_policy
from ppo import Learner, Rollout
from time_shares import TimeShares


def prepare(fitted: AdaptedArguments[Args]) -> torch.device:
    """Set torch up as the arguments say; return the device and print which path was taken."""
    workers = fitted.args.workers
    details = [f"{workers} emulator process{'es' if workers > 1 else ''}"] if workers else []
    return prepare_torch(fitted, *details)


class BackgroundLearner:
    """Runs the learner's work: here and now, or in a thread beside the next rollout."""

    def __init__(self, learner: Learner, overlap: bool) -> None:
        self.learner = learner
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="learner") if overlap else None
        self.work: Future[None] | None = None

    def learn(self, rollout: Rollout) -> None:
        """Learn from a rollout. With overlap wait for the one before, and act with what that has taught."""
        if self.pool is None:
            self._learn(rollout)
            return
        self.wait()
        self.work = self.pool.submit(self._learn_beside, rollout)

    def _learn(self, rollout: Rollout) -> None:
        with paceline.phase("ppo"):
            self.learner.learn(rollout)

    def _learn_beside(self, rollout: Rollout) -> None:
        if self.learner.device.type == "cpu":
            self._learn(rollout)
            return
        # In a stream of its own, or acting would wait for all that learning has asked of the device.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._learn(rollout)
        stream.synchronize()

    def settle(self) -> None:
        """Wait for the thread's work; the policy that acts goes on without knowing of it."""
        if self.work is not None:
            self.work.result()

    def go_on(self) -> None:
        """Go on as if the thread had just learned what the learner was restored to."""
        if self.pool is not None:
            self.work = self.pool.submit(lambda: None)

    def wait(self) -> None:
        """Wait for the thread's work, if there is any; raises what it raised."""
        if self.work is None:
            return
        with paceline.phase("wait"):
            self.work.result()
        self.work = None
        self.learner.publish()


def sources(args: Args) -> list[Source]:
    """The emulators: one in this process, or one for each worker."""
    direct = bool(args.direct)
    return [Remote(direct) for _ in range(args.workers)] if args.workers else [Emulator(direct)]


def size_of_picture(args: Args) -> tuple[int, int]:
    """Rows and columns of what the network sees."""
    shrink = 2 if args.small else 1
    return PICTURE[0] // shrink, PICTURE[1] // shrink


def make_learner(args: Args, device: torch.device) -> Learner:
    """The learner, untrained or with the policy that comes along."""
    size = size_of_picture(args)
    learner = Learner(args, *size, device)
    if args.start == "trained":
        learner.network.load_state_dict(trained_policy(*size))
    if args.overlap:
        learner.separate(*size)
    return learner


def train(args: Args, device: torch.device, environments: list[Environment]) -> Learner:
    """The training loop. One step is one decision of one environment; they take turns."""
    learner = make_learner(args, device)
    background_learner = BackgroundLearner(learner, bool(args.overlap))
    checkpoints, shares = Checkpoints(args), TimeShares(args)
    count = len(environments)
    # Two, so that one can be filled while the other is learned from.
    rollouts = [Rollout(args.rollout, count, *size_of_picture(args), device) for _ in range(2)]
    progress = checkpoints.resume(learner, environments)
    if progress is None:
        progress = Progress(0, [environment.reset() for environment in environments])
    else:
        background_learner.go_on()
    observations = progress.observations
    for step in paceline.steps(range(progress.steps, args.total_steps)):
        at = step % args.rollout
        rollout = rollouts[step // args.rollout % 2]
        turn = step % count
        if turn == 0:
            with paceline.phase("policy"):
                images, facts = learner.see(observations)
                choice = learner.choose(images, facts)
                rollout.put(at, images, facts, choice)
            for environment, action in zip(environments, choice.actions.tolist(), strict=True):
                environment.begin(action)
        observation, reward, ended = environments[turn].finish()
        rollout.judge(at, reward, ended)
        observations[turn] = environments[turn].reset() if ended else observation
        if at == args.rollout - 1:
            learner.finish(rollout, *learner.see(observations))
            background_learner.learn(rollout)
            shares.after_update((step + 1) // args.rollout)
            if checkpoints.is_due(step + 1):
                background_learner.settle()
                checkpoints.save(learner, environments, Progress(step + 1, observations))
    background_learner.wait()
    return learner


def score(learner: Learner, environment: Environment, args: Args) -> float:
    """Things found per game, over games that training never saw, with actions drawn from the policy."""
    torch.manual_seed(1_000_000)
    found = 0
    for _ in range(args.score_games):
        observation, ended = environment.reset(), False
        while not ended and environment.steps < args.score_steps:
            choice = learner.choose(*learner.see([observation]))
            environment.begin(int(choice.actions[0]))
            observation, _, ended = environment.finish()
        found += environment.found
    return found / args.score_games


def run(args: Args, device: torch.device) -> None:
    """Train, then say how well it learned."""
    emulators = sources(args)
    environments = [
        Environment(source, args, int(args.seed or 0) + at) for at, source in enumerate(emulators)
    ]
    learner = train(args, device, environments)
    states = np.bitwise_xor.reduce([environment.states for environment in environments])
    quality = score(learner, environments[0], args)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} things found per game")
    print(f"states: {states:08x}")
    print(f"parameters: {learner.fingerprint()}")
    for emulator in emulators:
        emulator.close()


def main() -> None:
    """Run what the arguments say; without an emulator one sentence tells so."""
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare(fitted)
    try:
        run(args, device)
    except MissingEmulatorError as error:
        sys.exit(f"train.py: {error}")
    except KeyboardInterrupt:
        sys.exit(f"train.py: interrupted{f', --resume {args.save} goes on from there' if args.save else ''}")


if __name__ == "__main__":
    main()
