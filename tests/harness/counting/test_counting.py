import socket
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paceline import profile as profiles
from paceline.counting import profile_rows
from paceline.counting.call_tree import ProfileSwitch, ThreadProfile
from paceline.document_building.counters import counter_rows
from paceline.measured.mark_recorder import MarkRecorder
from paceline.measured.phase_nodes import PhaseNode

from tests.harness.conftest import LOOP, Project, Value
from tests.harness.strangers import UNCOMPILED


def profile_of(work: Callable[[], object], room: int = 1000) -> ThreadProfile:
    """Return the call tree of a piece of work, with room for so many stacks."""
    switch = ProfileSwitch()
    switch.stacks_left = room
    profile = ThreadProfile(MarkRecorder(PhaseNode).main, switch)
    switch.on = True
    sys.setprofile(profile.callback)
    try:
        work()
    finally:
        sys.setprofile(None)
    return profile


def profile_rows_of(work: Callable[[], object], room: int = 1000) -> dict[str, dict[str, Any]]:
    """Return the rows of a piece of work by function name, with the calls of all phases summed."""
    rows = profile_rows.function_rows([profile_of(work, room)], Path("/"), 1)
    return {row["function"].rpartition(".")[2]: {**row, "calls": sum(row["calls"].values())} for row in rows}


def call_itself(depth: int) -> int:
    return call_itself(depth - 1) if depth else 0


def test_the_whole_is_the_number_that_was_counted() -> None:
    """Parts that were divided by the steps one by one add up to 3.9999999999999996."""
    calls = {f"phase{number}": count / 100 for number, count in enumerate((63, 115, 19, 203))}
    counted = {"steps": 100, "calls": calls, "operations": None, "memory": {}, "displaced": False}
    assert counter_rows([counted])[0]["samples"] == [4.0]


def test_calls_of_a_recursive_function() -> None:
    row = profile_rows_of(lambda: call_itself(9))["call_itself"]
    assert row["calls"] == 10
    # Its outermost call holds all the others once.
    assert row["self"] <= row["cumulative"] < 10 * row["self"] + 0.01


def generate_numbers() -> Any:
    yield from range(3)


def test_built_ins_and_resumed_generators_are_calls() -> None:
    rows = profile_rows_of(lambda: sorted(generate_numbers()))
    assert rows["sorted"]["calls"] == 1
    assert rows["generate_numbers"]["calls"] == 4


def test_a_call_that_raises_is_closed() -> None:
    def work() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="invalid literal"):
                int("x")
        call_itself(1)

    found = profile_of(work)
    under = {call.parent.key for call in found.calls if call.key is call_itself.__code__ and call.parent}
    assert under == {work.__code__, call_itself.__code__}
    assert profile_rows_of(work)["call_itself"]["calls"] == 2


def test_what_a_mark_asks_of_the_thread_is_not_the_codes() -> None:
    found = MarkRecorder(PhaseNode)

    def work() -> None:
        found.lap("act")
        found.lap("observe")
        threading.current_thread()

    assert profile_rows_of(work)["current_thread"]["calls"] == 1


def test_what_is_open_when_counting_begins_is_not_a_call() -> None:
    def work() -> None:
        call_itself(2)

    assert profile_rows_of(work)["call_itself"]["calls"] == 3
    assert "profile_of" not in {name for name, row in profile_rows_of(work).items() if row["calls"]}


def test_files_are_relative_and_environments_are_named() -> None:
    folder = Path(__file__).resolve().parent
    own, standard, installed = (
        profile_rows.source_location(function.__code__, folder)[1]
        for function in (call_itself, textwrap.dedent, pytest.approx)
    )
    assert own == Path(__file__).name
    assert standard == "python/textwrap.py"
    assert installed.startswith("site-packages/_pytest/")
    system = profile_rows.relative_file("/usr/lib/python3/dist-packages/torch/nn/modules/module.py", folder)
    assert system == "site-packages/torch/nn/modules/module.py"
    made = tempfile.NamedTemporaryFile(prefix="GCNConv_propagate_", suffix=".py")  # noqa: SIM115
    assert profile_rows.relative_file(made.name, folder).endswith("/GCNConv_propagate_*.py")
    made.close()


NO_STACKS = {"rows": [], "rest": {"stacks": 0, "calls": 0.0, "self": 0.0}}
WITHOUT_STACKS = {"steps": 5, "operations": None, "stacks": NO_STACKS, "graph_break_places": []}


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
    found = profiles.build_profile({**WITHOUT_STACKS, "functions": rows})
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
    counted = {**WITHOUT_STACKS, "functions": rows}
    kept = profiles.build_profile(counted)["functions"]
    assert next(row for row in kept if row["function"] == "f499")["phase"] == "act"


# By `--no-sweep` nothing is profiled either, which takes a start of torch more.
TORCH_LOOP = (
    UNCOMPILED
    + """
import paceline
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
)


def test_tensor_operations_are_counted_by_phase(prepared_project: Project, value: Value) -> None:
    prepared_project.write(TORCH_LOOP, steps=40, repetitions=1)
    raw = prepared_project.measure("--no-sweep")
    assert value(raw, "scalar_reads")["value"] == 1.0
    assert value(raw, "scalar_reads", "log")["value"] == 1.0
    assert value(raw, "host_device_copies")["value"] == 0.0
    assert value(raw, "tensor_operations")["exact"]
    assert value(raw, "tensor_operations", "backward")["value"] > 2
    assert value(raw, "optimizer_steps", "optimizer")["value"] == 1.0
    assert value(raw, "tensors_allocated", "forward")["value"] == 3.0
    assert value(raw, "allocated_bytes", "forward")["value"] == 4 * (2 * 4 + 2 * 4 + 1)
    assert value(raw, "recompilations")["value"] == value(raw, "graph_breaks")["value"] == 0.0
    kinds = {row["name"]: row for row in raw["profile"]["operations"]}
    assert kinds["aten::addmm"]["count"] == 1.0
    assert 0 < kinds["aten::addmm"]["seconds"] < 0.01
    assert [(row["phase"], row["count"]) for row in kinds["aten::addmm"]["phases"]] == [("forward", 1.0)]
    for kind in kinds.values():
        assert kind["count"] == pytest.approx(sum(row["count"] for row in kind["phases"]))
    assert raw["environment"]["torch"]
    # The dispatch mode's own calls must not count: optimizer and module code alone need fewer.
    assert value(raw, "function_calls")["value"] < 300


THREADED = (
    UNCOMPILED
    + """
import os, queue, threading, paceline
asked, answered = queue.Queue(), queue.Queue()
def double(number):
    return (2 * torch.ones(number)).sum().item()
def answer():
    while True:
        answered.put(double(asked.get()))
threading.Thread(target=answer, daemon=True).start()
for number in paceline.steps(range(10**6)):
    asked.put(3)
    answered.get()
    brief = threading.Thread(target=double, args=(2,))
    brief.start()
    brief.join()
    paceline.count("asked")
    paceline.count("unlike", os.getpid())
"""
)


def test_every_thread_is_counted_and_so_is_what_the_code_counts(
    prepared_project: Project, value: Value
) -> None:
    prepared_project.write(THREADED, steps=20, repetitions=1)
    raw = prepared_project.measure("--no-sweep")
    functions = {row["function"]: row["calls"] for row in raw["profile"]["functions"]}
    assert functions["double"] == 2.0
    assert value(raw, "scalar_reads")["value"] == 2.0
    assert value(raw, "allocated_bytes")["value"] == 2 * 4 * (3 + 2 + 1)
    asked, unlike = value(raw, "count.asked"), value(raw, "count.unlike")
    assert (asked["value"], asked["exact"], unlike["exact"]) == (1.0, True, False)
    warnings = {row["code"]: row["message"] for row in raw["warnings"]}
    assert "count.unlike" in warnings["counters_inexact"]


COMPILED = """
import paceline, torch
@torch.compile(backend="eager")
def double(values):
    values = values * 2
    print("", end="")
    return values + 1
@torch.compile(backend="eager", dynamic=False)
def grow(values):
    return values.sin()
for number in paceline.steps(range(10**6)):
    with paceline.phase("double"):
        double(torch.ones(2))
    with paceline.phase("grow"):
        grow(torch.ones(1 + (number >= 15)))
"""


def test_graph_breaks_and_recompilations_are_counted_by_phase(
    prepared_project: Project, value: Value
) -> None:
    prepared_project.write(COMPILED, steps=20, repetitions=1, countings=1)
    raw = prepared_project.measure("--no-sweep")
    assert value(raw, "graph_breaks", "double")["value"] == value(raw, "graph_breaks")["value"] == 1.0
    assert value(raw, "recompilations", "grow")["value"] == value(raw, "recompilations")["value"] == 1 / 20
    # Compiled code runs compiled while its operations are counted.
    assert value(raw, "tensor_operations", "double")["value"] == 3.0


DISPLACING = """
import sys, paceline
for number in paceline.steps(range(10**6)):
    len("abc")
    if number == 30:
        sys.setprofile(lambda *_: None)
"""


def test_a_profile_of_the_codes_own_makes_calls_inexact(project: Project, value: Value) -> None:
    project.write(DISPLACING, steps=50, repetitions=1)
    raw = project.measure()
    calls = value(raw, "function_calls")
    assert not calls["exact"]
    assert 1.0 <= calls["value"] < 1.1
    assert "function_calls" in next(r["message"] for r in raw["warnings"] if r["code"] == "counters_inexact")


def test_processes_that_ask_for_one_port_count_one_after_the_other(project: Project, value: Value) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    held = f"import socket\nheld = socket.create_server(('127.0.0.1', {port}))\n"
    project.write(held + LOOP, steps=20, repetitions=1)
    assert value(project.measure("--no-sweep"), "function_calls")["exact"]
