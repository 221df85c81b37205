"""One case of a history while it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bench.history.plan import PlannedStep

if TYPE_CHECKING:
    from dashboard.models import Case, Run, Series


@dataclass(slots=True)
class CaseHistory:
    """A case with its series, its runs in order of the commits, and the steps that were planned in it."""

    case: Case
    series: list[Series]
    runs: list[Run]
    tainted: np.ndarray
    steps: list[PlannedStep] = field(default_factory=list)
