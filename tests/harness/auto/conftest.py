from __future__ import annotations

import paceline
import pytest
from paceline.measured.timing import TimingRecorder


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> TimingRecorder:
    timing = TimingRecorder(0, 10, print)
    monkeypatch.setattr(paceline, "phase", timing.phase)
    return timing


def phase_counts(recorder: TimingRecorder) -> dict[str, int]:
    return {node.path: node.count for node in recorder.nodes(recorder.main)}
