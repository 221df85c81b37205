"""Recorders as the tests of marks make them."""

from typing import Any

from paceline.measured.mark_recorder import MarkRecorder
from paceline.measured.phase_nodes import PhaseNode
from paceline.measured.timing import TimingRecorder


def make_recorder() -> MarkRecorder[PhaseNode]:
    return MarkRecorder(PhaseNode)


def make_timing_recorder(warmup: int, steps: int) -> TimingRecorder:
    return TimingRecorder(warmup, steps, lambda _: None)


def phase_counts(recorder: MarkRecorder[Any]) -> dict[str, int]:
    return {node.path: node.count for node in recorder.main.nodes}
