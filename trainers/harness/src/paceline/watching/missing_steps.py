"""Says why a script took no step: what was seen of it, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..measured.plan import ProcessPlan

NO_MARK = (
    "never iterated over paceline.steps: wrap its training loop in it, or time it as it is, with auto = true"
)
NO_OWNER = (
    "took no step: no environment (gymnasium, gym, Stable-Baselines3, tianshou, EnvPool) and no torch "
    "optimizer stepped in the process that was started"
)
MARK = "`for batch in paceline.steps(batches):`"
MARK_LOOP = f"write its loop as {MARK}"
STEPPED = {
    "optimizer": "optimizer steps",
    "batch": "batches of a DataLoader",
    "environment": "environment steps",
}
PHASES = {"forward": "calls of modules", "backward": "backward passes", "generate": "generations"}
# Child processes that worked less have only been asked something.
CHILD_SECONDS = 1.0
# Libraries that hand out results before they are computed, and what waits for them.
LAZY = {
    "jax": "jax.block_until_ready(result)",
    "mlx": "mlx.core.eval(result)",
    "tensorflow": "result.numpy()",
    "paddle": "result.numpy()",
    "mxnet": "result.wait_to_read()",
}


def describe_missing_steps(plan: ProcessPlan, results: Iterable[Mapping[str, Any]]) -> str:
    """Return the sentence's end, after the script's name."""
    if not plan.auto:
        return NO_MARK
    seen = _Seen(results)
    head = f"took no step of the kind {plan.step}" if plan.step else NO_OWNER
    return f"{head}; {seen.describe()}; {_advise_user(plan.step, seen)}"


def describe_failed_programs(results: Iterable[Mapping[str, Any]]) -> str:
    """Say of a script that failed, where all of its work was done by programs, to measure those.

    Ranks that it spawns are measured with it: where they fail before their first step, nothing else is to do.
    """
    seen = _Seen(results)
    if seen.has_own_work or not seen.programs or seen.child_seconds < CHILD_SECONDS:
        return ""
    worked = f"{seen.child_seconds:.0f} s of work were done in processes that it started"
    return f"; it took no step itself, {worked}: {_advise_children(seen)}"


def describe_other_steps(left: Mapping[str, Any], needed: int) -> str:
    """Say where steps of the same kind would have been enough, but ended none: those of another owner."""
    kind = str((left.get("step") or {}).get("kind"))
    # The owner's own first one begins the first step.
    others = left.get("seen", {}).get(kind, 0) - left["taken"] - 1
    if others < needed:
        return ""
    return f"; {others:,} other {STEPPED[kind]} ended none, mark theirs: {MARK}"


class _Seen:
    """What all processes that left a result did."""

    def __init__(self, results: Iterable[Mapping[str, Any]]) -> None:
        self.stepped: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self.libraries: list[str] = []
        self.child_seconds = 0.0
        self.programs: list[str] = []
        self.has_own_work = False
        for left in results:
            self.stepped.update(left.get("seen", {}))
            work = left.get("work", {})
            self.phases.update(work.get("phases", {}))
            self.libraries += [name for name in work.get("libraries", ()) if name not in self.libraries]
            self.child_seconds += work.get("child_seconds", 0.0)
            self.programs += [command for command in work.get("programs", ()) if command not in self.programs]
            self.has_own_work |= bool(left["called"] or left.get("seen") or work.get("phases"))

    def describe(self) -> str:
        """Return `seen: 12 batches of a DataLoader, 12 calls of modules`, or what wasn't there."""
        found = [f"{self.stepped[kind]:,} {noun}" for kind, noun in STEPPED.items() if self.stepped[kind]]
        found += [f"{self.phases[name]:,} {noun}" for name, noun in PHASES.items() if self.phases[name]]
        others = [name for name in self.libraries if name != "torch"]
        if others:
            found.append(f"the import of {', '.join(others)}")
        if self.child_seconds >= CHILD_SECONDS:
            found.append(f"{self.child_seconds:.0f} s of work in processes that it started")
        if found:
            return f"seen: {', '.join(found)}"
        return "nothing else was seen" if "torch" in self.libraries else "it never imported torch"


def _advise_children(seen: _Seen) -> str:
    if seen.programs:
        commands = " or ".join(f"paceline script {program}" for program in seen.programs)
        return f"measure what it starts, {commands}"
    return f"measure the script that those processes run, or {MARK_LOOP} in the one that was started"


def _advise_user(chosen: str, seen: _Seen) -> str:
    others = [kind for kind in STEPPED if seen.stepped[kind] > 1 and kind != chosen]
    if others:
        return f'choose --step {others[0]} (in a manifest step = "{others[0]}"), or {MARK_LOOP}'
    for library, wait in LAZY.items():
        if library in seen.libraries:
            return f"steps of {library} aren't seen by themselves: {MARK_LOOP}, and end each with {wait}"
    if "ray" in seen.libraries:
        return (
            "Ray trains in processes of its own: write `for _ in paceline.steps(range(n)): algorithm.train()`"
        )
    if seen.child_seconds >= CHILD_SECONDS:
        return _advise_children(seen)
    if seen.phases["backward"] and not seen.stepped["optimizer"]:
        return f"an optimizer that is no torch.optim.Optimizer isn't seen: {MARK_LOOP}"
    return MARK_LOOP
