"""How many passes and optimizer steps a step holds: calls, or what was counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from paceline.document_building.document_builder import _count_passes


def count_passes(
    phases: dict[str, float], kind: str, model_share: float, tallies: dict[str, dict[str, float]]
) -> dict[str, float]:
    run: Any = SimpleNamespace(
        inputs=SimpleNamespace(taken_from=None),
        counted=[{"model_share": model_share, "operations": tallies}] if tallies else [],
        request=SimpleNamespace(benchmark=SimpleNamespace(auto=True)),
        timed=[SimpleNamespace(step={"kind": kind})],
    )
    rows = [{"path": path, "thread": "main", "count": count} for path, count in phases.items()]
    return _count_passes(run, rows)


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
    tallies = {} if counted is None else {"": {"optimizer_steps": counted}}
    passes = count_passes({"forward": 2, "backward": 2, "optimizer": called}, kind, 0, tallies)
    assert passes.get("optimizer") == told
    # No module with weights was called, such as where the code calls its `forward`: a loss is no pass.
    assert "forward" not in passes


def test_what_a_backward_pass_computes_again_is_no_forward_pass() -> None:
    phases = {"learn/forward": 2, "backward": 2, "backward/forward": 16, "backward/checkpoint/forward": 4}
    told = count_passes(phases, "optimizer", 1, {"": {"optimizer_steps": 1}})
    assert told == {"forward": 2, "backward": 2}
