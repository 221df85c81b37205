"""What a person or a script writes to ask for an estimate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """As it was written; what is empty is left to Paceline.

    base: a commit: hash, branch or tag; or `rolling`, `merge-base`, `pinned`, a baseline of the head.
    head: another commit; empty: the base's.
    case: `snake_dqn[variant=optimized]`, or a part of that which names one case; empty: the only one.
    head_case: the head's, where it is another one. toggle: the parameters that the head's case has instead,
    `compile=true`, or `compile` for the other value of one.
    metric: `step_time`, `phase_time:learn`. precision: `1%`. minutes: a number.
    quick: in short windows; None: as the case is measured otherwise. pool: whose machines; empty: likewise.
    """

    base: str
    head: str = ""
    case: str = ""
    head_case: str = ""
    toggle: str = ""
    metric: str = ""
    precision: str = ""
    minutes: str = ""
    quick: bool | None = None
    pool: str = ""
