"""Changes of what ends a script's steps: who takes over from an owner that stopped, and what is told of it.

An owner may stop in the warm-up, long before another of its kind: an optimizer as that of a short pretraining
does, an environment as one that was only looked at, where there is learning beside the other one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

# So many times as often a rival steps without a step of the owner, and so often at least, until it takes
# over.
OUTRUN = 10
OUTRUN_LEAST = 100


class Rival:
    """The one of the owner's kind that steps on; `steps` are its steps since the owner's last one."""

    def __init__(self) -> None:
        self.steps = 0
        self._rival: Callable[[], object] = lambda: None
        self._steps_of_others = self._learned_before = 0

    def step(self, stepped: object, owner_steps: int, learned: int) -> bool:
        """Take a step of one of the kind, and return whether it has outrun the owner.

        `owner_steps` are those that the owner has ended, `learned` the steps of all optimizers so far.
        """
        if self._rival() is not stepped:
            self._steps_of_others += 1
        # A rival may have stopped as well.
        if not self.steps or self._rival() is None or self._steps_of_others >= OUTRUN_LEAST:
            self._rival, self.steps = refer_to(stepped), 0
            self._learned_before = learned
        elif self._rival() is not stepped:
            return False
        self._steps_of_others = 0
        self.steps += 1
        return self.steps >= max(OUTRUN_LEAST, OUTRUN * (owner_steps + 1))

    def has_learned(self, learned: int) -> bool:
        """Whether an optimizer stepped since this one became the rival."""
        return learned != self._learned_before


class Succession:
    """The latest owner that another one took over from, and whether owners came back."""

    def __init__(self) -> None:
        self._succeeded = ""
        self._after = 0
        self._former_names: set[str] = set()
        self._alternates = False

    def note(self, former: str, name: str, steps: int) -> None:
        """Note that the owner of the second name took over, after so many steps of the former one's."""
        self._succeeded, self._after = former, steps
        self._alternates |= name != former and name in self._former_names
        self._former_names.add(former)

    def describe(self) -> dict[str, Any]:
        """Return the fields that describe it; none where nobody took over."""
        if not self._succeeded:
            return {}
        return {
            "succeeded": self._succeeded,
            "succeeded_after": self._after,
            "alternates": self._alternates,
        }


def name_of_owner(owner: object) -> str:
    """Return the name of its class."""
    return type(owner).__name__[:100]


def refer_to(owner: object) -> Callable[[], object]:
    """Return what returns the owner, without keeping it alive where that is possible."""
    try:
        return weakref.ref(owner)
    except TypeError:
        # A class with slots; it stays alive then, which does no harm.
        return lambda: owner
