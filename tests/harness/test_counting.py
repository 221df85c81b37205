import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paceline import profile as profiles
from paceline.counting import stacks
from paceline.counting.functions import Switch, ThreadProfile
from paceline.measured.marks import Marks, Node

from .conftest import Project, Value


def profile_of(work: Callable[[], object], room: int = 1000) -> ThreadProfile:
    """Return the call tree of a piece of work, with room for so many stacks."""
    switch = Switch()
    switch.room = room
    profile = ThreadProfile(Marks(Node).main, switch)
    switch.on = True
    sys.setprofile(profile.callback)
    try:
        work()
    finally:
        sys.setprofile(None)
    return profile


def profiled(work: Callable[[], object], room: int = 1000) -> dict[str, dict[str, Any]]:
    """Return the rows of a piece of work by function name, with the calls of all phases summed."""
    rows = stacks.functions([profile_of(work, room)], Path("/"), 1)
    return {row["function"].rpartition(".")[2]: {**row, "calls": sum(row["calls"].values())} for row in rows}


def recurse(depth: int) -> int:
    return recurse(depth - 1) if depth else 0


def test_calls_of_a_recursive_function() -> None:
    row = profiled(lambda: recurse(9))["recurse"]
    assert row["calls"] == 10
    # Its outermost call holds all the others once.
    assert row["self"] <= row["cumulative"] < 10 * row["self"] + 0.01


def generate() -> Any:
    yield from range(3)


def test_built_ins_and_resumed_generators_are_calls() -> None:
    rows = profiled(lambda: sorted(generate()))
    assert rows["sorted"]["calls"] == 1
    assert rows["generate"]["calls"] == 4


def test_a_call_that_raises_is_closed() -> None:
    def work() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="invalid literal"):
                int("x")
        recurse(1)

    found = profile_of(work)
    under = {call.parent.key for call in found.calls if call.key is recurse.__code__ and call.parent}
    assert under == {work.__code__, recurse.__code__}
    assert profiled(work)["recurse"]["calls"] == 2


def test_what_is_open_when_counting_begins_is_not_a_call() -> None:
    def work() -> None:
        recurse(2)

    assert profiled(work)["recurse"]["calls"] == 3
    assert "profile_of" not in {name for name, row in profiled(work).items() if row["calls"]}


def test_files_are_relative_and_environments_are_named() -> None:
    folder = Path(__file__).resolve().parent
    assert stacks.place(recurse.__code__, folder)[1] == Path(__file__).name
    assert stacks.place(Path.exists.__code__, folder)[1] == "python/pathlib.py"
    assert stacks.place(pytest.approx.__code__, folder)[1].startswith("site-packages/_pytest/")


NO_STACKS = {"rows": [], "rest": {"stacks": 0, "calls": 0.0, "self": 0.0}}


def test_the_profile_is_bounded_and_the_rest_is_summed() -> None:
    rows = [
        {
            "function": f"f{n}",
            "file": "a.py",
            "line": n,
            "calls": {"learn": 1.0},
            "self": 0.001,
            "cumulative": 0.001,
        }
        for n in range(500)
    ]
    found = profiles.build({"steps": 5, "functions": rows, "operations": None, "stacks": NO_STACKS})
    assert len(found["functions"]) == 200
    rest = {name: found["rest"][name] for name in ("functions", "calls", "self")}
    assert rest == {"functions": 300, "calls": 300.0, "self": pytest.approx(0.3)}


def test_a_cheap_function_that_is_called_often_is_kept() -> None:
    rows = [
        {
            "function": f"f{n}",
            "file": "a.py",
            "line": n,
            "calls": {"learn": 1.0},
            "self": 1.0,
            "cumulative": 1.0,
        }
        for n in range(500)
    ]
    rows[499].update(calls={"act": 9000.0}, self=1e-9)
    counted = {"steps": 5, "functions": rows, "operations": None, "stacks": NO_STACKS}
    kept = profiles.build(counted)["functions"]
    assert next(row for row in kept if row["function"] == "f499")["phase"] == "act"


TORCH_LOOP = """
import torch, paceline
torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in paceline.steps(range(10**6)):
    with paceline.phase("forward"):
        loss = layer(torch.ones(2, 4)).sum()
    with paceline.phase("backward"):
        optimizer.zero_grad()
        loss.backward()
    with paceline.phase("optimizer"):
        optimizer.step()
    with paceline.phase("log"):
        float(loss.detach())
paceline.quality("loss", loss.item())
"""


def test_tensor_operations_are_counted_by_phase(project: Project, value: Value) -> None:
    project.write(TORCH_LOOP, steps=40, repetitions=1)
    raw = project.measure()
    assert value(raw, "scalar_reads")["value"] == 1.0
    assert value(raw, "scalar_reads", "log")["value"] == 1.0
    assert value(raw, "host_device_copies")["value"] == 0.0
    assert value(raw, "tensor_operations")["exact"]
    assert value(raw, "tensor_operations", "backward")["value"] > 2
    kinds = {row["name"]: row["count"] for row in raw["profile"]["operations"]}
    assert kinds["aten::addmm"] == 1.0
    assert raw["environment"]["torch"]
    # The dispatch mode's own calls must not count: optimizer and module code alone need fewer.
    assert value(raw, "function_calls")["value"] < 300
