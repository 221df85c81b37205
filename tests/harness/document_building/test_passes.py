"""How many optimizer steps a step holds: calls of its `step`, or what was counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from paceline.document_building.document_builder import _count_passes


@pytest.mark.parametrize(
    ("kind", "called", "counted", "told"),
    [
        ("optimizer", 1, None, 1),
        # A wrapper that is called in each micro-step, or two optimizers.
        ("optimizer", 2, None, None),
        ("optimizer", 2, 1, 1),
        # A counted window may hold one update more or less than the timed one does.
        ("environment", 0.125, 0.0833, 0.125),
        ("mark", 1, 0.25, 0.25),
    ],
)
def test_calls_of_an_optimizer_are_not_always_steps(
    kind: str, called: float, counted: float | None, told: float | None
) -> None:
    run: Any = SimpleNamespace(
        inputs=SimpleNamespace(taken_from=None),
        counted=[]
        if counted is None
        else [{"model_share": 0, "operations": {"": {"optimizer_steps": counted}}}],
        request=SimpleNamespace(benchmark=SimpleNamespace(auto=True)),
        timed=[SimpleNamespace(step={"kind": kind})],
    )
    counts = {"forward": 2, "backward": 2, "optimizer": called}
    phases = [{"path": name, "thread": "main", "count": count} for name, count in counts.items()]
    passes = _count_passes(run, phases)
    assert passes.get("optimizer") == told
    # No module with weights was called, such as where the code calls its `forward`: a loss is no pass.
    assert "forward" not in passes
