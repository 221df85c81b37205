"""How many passes and optimizer steps a step holds, where nothing was counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from paceline.document_building.document_builder import _count_passes


@pytest.mark.parametrize(
    ("kind", "called", "told"),
    [
        ("optimizer", 1, {"backward": 2, "optimizer": 1}),
        # A wrapper that is called in each micro-step, or two optimizers.
        ("optimizer", 2, {"backward": 2}),
        ("environment", 2, {"backward": 2, "optimizer": 2}),
    ],
)
def test_uncounted_calls_of_an_optimizer_are_no_steps(kind: str, called: int, told: dict[str, int]) -> None:
    run: Any = SimpleNamespace(
        inputs=SimpleNamespace(taken_from=None),
        counted=[],
        request=SimpleNamespace(benchmark=SimpleNamespace(auto=True)),
        timed=[SimpleNamespace(step={"kind": kind})],
    )
    counts = {"forward": 2, "backward": 2, "optimizer": called}
    phases = [{"path": name, "thread": "main", "count": count} for name, count in counts.items()]
    assert _count_passes(run, phases) == told
