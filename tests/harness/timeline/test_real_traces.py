"""Where a step's time went, from what Kineto wrote on an NVIDIA H100 of two workloads of the doctor."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from paceline.timeline.device_profile import build_device_profile
from paceline.timeline.trace_events import read_trace

H100 = Path(__file__).parents[2] / "golden" / "h100"


def profile_trace(name: str) -> dict[str, Any]:
    raw = json.loads(gzip.decompress((H100 / f"{name}.trace.json.gz").read_bytes()))
    return build_device_profile(read_trace(raw))


def test_a_trace_of_a_real_device_tells_what_was_planted() -> None:
    profile = profile_trace("planted_time")
    idle: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in profile["idle"]:
        idle[row["cause"], row["phase"]] += row["seconds"]
    assert (profile["device"], profile["steps"], profile["launches"]) == ("cuda", 10, 104)
    assert [(row["operation"], row["phase"], row["count"]) for row in profile["rows"][:2]] == [
        ("aten::mm", "products", 4),
        ("aten::add_", "small", 100),
    ]
    # Slept, and computed behind a read of the device's value.
    assert idle["data", "data_loading"] == pytest.approx(0.0031, abs=0.0001)
    assert idle["synchronisation", "think"] == pytest.approx(0.0020, abs=0.0001)
    assert idle["host", "small"] > 100 * 5e-6
    assert profile["explained"] > 0.99
    whole = profile["busy_seconds"] + sum(row["seconds"] for row in profile["idle"])
    assert whole == pytest.approx(profile["step_seconds"], rel=1e-6)


def test_a_graphs_kernels_are_seen_on_a_real_device() -> None:
    profile = profile_trace("cuda_graph")
    # Two graphs are launched in a step; each kernel belongs to the phase that launched its graph.
    assert profile["launches"] == 2
    counts = {row["phase"]: row["count"] for row in profile["rows"]}
    assert counts == {"long": 16, "short": 4}
    assert profile["busy_seconds"] / profile["step_seconds"] == pytest.approx(0.957, abs=0.001)
