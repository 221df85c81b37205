"""Messages of every protocol version that this site still knows stay readable: a golden file of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dashboard.host_protocol import (
    OLDEST_PROTOCOL,
    PROTOCOL,
    MessageError,
    MessageFields,
    assignment_message,
    pair_message,
    read_assignment,
    read_counted,
    read_message,
    read_pair,
)
from dashboard.models import Run
from tests.dashboard.hosts.conftest import Call

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "host_protocol"
# What messages have gained since, as it is where a site of an earlier release says nothing of it.
GAINED: dict[str, Any] = {
    "run": {"counted_at": "", "on_branch": True},
    "run_with_counting": {"on_branch": True},
    "experiment": {"seeded": False},
}
KNOWN = range(OLDEST_PROTOCOL, PROTOCOL + 1)


def read_golden(version: int, name: str) -> Any:
    return json.loads((GOLDEN / str(version) / f"{name}.json").read_text())


def with_gains(golden: dict[str, Any], name: str) -> dict[str, Any]:
    sides = {side: {"on_branch": True, **golden[side]} for side in ("base", "head") if side in golden}
    return {**GAINED[name], **golden, **sides}


def test_every_known_version_has_its_messages() -> None:
    assert {int(folder.name) for folder in GOLDEN.iterdir()} >= set(KNOWN)


@pytest.mark.parametrize("version", KNOWN)
@pytest.mark.parametrize("name", ["run", "run_with_counting", "experiment"])
def test_an_assignment_is_read_and_written_as_it_was(version: int, name: str) -> None:
    golden = read_golden(version, name)
    assignment = read_assignment(MessageFields(golden))
    assert json.loads(json.dumps(assignment_message(assignment))) == with_gains(golden, name)
    # A newer site may say more.
    assert read_assignment(MessageFields({**golden, "later": 1})) == assignment


@pytest.mark.parametrize("name", ["run", "experiment"])
def test_an_assignment_has_the_files_that_are_kept(name: str) -> None:
    golden = {**read_golden(1, name), "files": {"bench/train.py": "print()"}}
    written = json.loads(json.dumps(assignment_message(read_assignment(MessageFields(golden)))))
    assert written == with_gains(golden, name)
    for path, problem in {"../x": "must be a path inside", "paceline.toml": "is the manifest"}.items():
        with pytest.raises(MessageError, match=problem):
            read_assignment(MessageFields({**golden, "files": {path: ""}}))


@pytest.mark.parametrize("version", KNOWN)
def test_a_pair_is_read_and_written_as_it_was(version: int) -> None:
    golden = read_golden(version, "pair")
    written = json.loads(json.dumps(pair_message(read_pair(MessageFields(golden)))))
    # What the version has gained since is empty.
    assert written == {**golden, "others": {}, "seed": None, "steps": {}, "typical_phases": {}}


def test_a_pair_tells_of_memory_and_quality() -> None:
    golden = {**read_golden(1, "pair_with_others"), "seed": 7, "steps": {"base": [0.1], "head": [0.2]}}
    golden["typical_phases"] = {"learn": [0.05, 0.1]}
    assert json.loads(json.dumps(pair_message(read_pair(MessageFields(golden))))) == golden


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ([], "others must be an object"),
        ({"x": 1}, "others.x must be an object"),
        ({"x": {}}, "others.x.unit must be a text"),
        ({"x": {"unit": "s", "better": "lower", "kind": "time", "base": 1, "head": 1}}, "memory or quality"),
        ({"x" * 101: {}}, "with short names"),
        ({f"x{number}": {} for number in range(51)}, "50 members at most"),
    ],
)
def test_other_metrics_are_read_as_what_they_must_be(others: Any, sentence: str) -> None:
    golden = read_golden(1, "pair")
    with pytest.raises(MessageError, match=sentence):
        read_pair(MessageFields({**golden, "others": others}))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"seconds": -1.0}, "seconds must be a number of seconds up to"),
        ({"seconds": 1e10}, "seconds must be a number of seconds up to"),
        ({"base": 1e101}, "base must be a finite number up to"),
        ({"head": -1e200}, "head must be a finite number up to"),
    ],
)
def test_numbers_of_a_pair_have_bounds(changed: Any, sentence: str) -> None:
    with pytest.raises(MessageError, match=sentence):
        read_pair(MessageFields({**read_golden(PROTOCOL, "pair"), **changed}))


def test_what_nearly_is_zero_is_zero() -> None:
    """As in a document: of nothing else a ratio is infinite."""
    read = read_pair(MessageFields({**read_golden(PROTOCOL, "pair"), "base": 5e-324}))
    assert (read.base, read.head) == (0.0, 0.0175)


POINT = {"value": 8.0, "repetition": 0, "steps": 5, "seconds": 2.0, "phases": {"act": 1.5}, "waited": 0.1}
SWEPT = {"parameter": "games", "amount": None, "base": [POINT], "head": [POINT]}


def test_sweeps_are_read_as_they_were() -> None:
    golden = read_golden(PROTOCOL, "pair")
    assert read_pair(MessageFields({**golden, "sweeps": SWEPT})).sweeps == SWEPT
    # A host of an earlier release doesn't say what its points waited, a newer one may say more.
    earlier = {name: value for name, value in POINT.items() if name != "waited"}
    said = {**SWEPT, "base": [earlier, {**POINT, "later": 1}]}
    read = read_pair(MessageFields({**golden, "sweeps": said})).sweeps
    assert read["base"] == [{**POINT, "waited": 0.0}, POINT]


@pytest.mark.parametrize(
    ("sweeps", "sentence"),
    [
        ({"base": 5}, "sweeps.parameter must be a text"),
        ({**SWEPT, "amount": "much"}, "sweeps.amount must be a finite number"),
        ({**SWEPT, "amount": -1}, "sweeps.amount must be a positive number"),
        ({**SWEPT, "head": {}}, "sweeps.head must be a list of objects"),
        ({**SWEPT, "head": [1]}, "sweeps.head must be an object"),
        ({**SWEPT, "head": [POINT] * 1001}, "sweeps.head must have 1000 points at most"),
        ({**SWEPT, "base": [{**POINT, "value": "x"}]}, "sweeps.base.value must be a finite number"),
        ({**SWEPT, "base": [{**POINT, "phases": [1]}]}, "sweeps.base.phases must be an object"),
        ({**SWEPT, "base": [{**POINT, "phases": {"a": -1}}]}, "sweeps.base.phases.a must be a number of"),
    ],
)
def test_sweeps_of_another_shape_are_refused(sweeps: Any, sentence: str) -> None:
    with pytest.raises(MessageError, match=sentence):
        read_pair(MessageFields({**read_golden(PROTOCOL, "pair"), "sweeps": sweeps}))


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([1.0], "steps must be an object"),
        ({"base": [1.0]}, "steps.head must be a list of 200 positive numbers at most"),
        ({"base": [1.0], "head": [0.0]}, "steps.head must have positive numbers alone"),
        ({"base": [1.0] * 201, "head": []}, "steps.base must be a list of 200"),
        ({"base": [1.0, 2.0], "head": [1.0]}, "as many of the base as of the head"),
        ({"base": [1.0], "head": [1.0], "third": [1.0]}, "and nothing else"),
    ],
)
def test_steps_are_as_many_of_both_sides(steps: Any, sentence: str) -> None:
    with pytest.raises(MessageError, match=sentence):
        read_pair(MessageFields({**read_golden(1, "pair"), "steps": steps}))


@pytest.mark.django_db
@pytest.mark.parametrize("version", KNOWN)
def test_a_host_of_the_version_measures_for_this_site(version: int, call: Call, run: Run) -> None:
    """It says what it said then, and understands what it is answered now."""
    requests = read_golden(version, "requests")
    for path in ("register", "heartbeat"):
        assert call(path, requests[path])[0] == 200
    claimed = call("claim", requests["claim"])[1]["assignment"]
    assert set(read_golden(version, "run")) <= set(claimed)
    for path in ("runs/advance", "runs/heartbeat", "runs/fail"):
        assert call(path, {"lease": claimed["lease"], **requests[path]})[0] == 200
    assert call("stopping", requests["stopping"])[0] == 200
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "train.py crashed.")


def test_sweeps_have_a_bound() -> None:
    with pytest.raises(MessageError, match="sweeps must be 1048576 characters long at most"):
        read_pair(MessageFields({**read_golden(PROTOCOL, "pair"), "sweeps": {"base": "x" * 2**20}}))


COUNTER = {
    "name": "graph_breaks",
    "unit": "breaks/step",
    "better": "lower",
    "headline": False,
    "samples": [1.0],
}


def test_of_a_counted_document_is_read_what_is_kept() -> None:
    row = {"function": "push", "file": "a.py", "line": 1, "calls": 2.0, "self": 0.1, "cumulative": 0.2}
    measured = {
        "environment": {"path": "cpu", "memory_bytes": 2**34, "torch": "2.7"},
        "processes": [{"name": "main", "peak_memory": None}],
        "phases": [{"thread": "main"}],
        "profile": {"functions": [{**row, "phase": None}], "stacks": []},
    }
    counted = read_counted(MessageFields(measured))
    assert counted["environment"] == {"path": "cpu", "memory_bytes": 2**34}
    assert counted["profile"] == {"functions": [{**row, "phase": None}]}
    assert counted["counters"] == [], "of a host of an earlier release"
    reads = {"name": "scalar_reads", "unit": "reads/step", "better": "lower", "headline": True}
    sent = {**reads, "samples": [2.0, 2.0]}
    assert read_counted(MessageFields({**measured, "counters": [{**sent, "phase": None}]}))["counters"] == [
        sent
    ]
    assert read_counted(MessageFields({})) == {}


@pytest.mark.parametrize(
    ("measured", "sentence"),
    [
        ({"profile": []}, "profile must be an object"),
        ({"profile": {"functions": [1]}}, "profile.functions must be an object"),
        ({"processes": {"main": 1}}, "processes must be a list of objects"),
        ({"counters": [{"name": "a", "unit": "1", "better": "more"}]}, "counters.* must say lower or higher"),
        ({"counters": [{**COUNTER, "samples": []}]}, "samples must be a list of one to 2 numbers"),
        ({"counters": [{**COUNTER, "samples": [-1.0]}]}, "samples must have no negative numbers"),
        ({"counters": [COUNTER] * 201}, "counters must be 200 at most"),
        ({"environment": {"memory_bytes": "much"}}, "environment.memory_bytes must be a whole number"),
    ],
)
def test_a_counted_document_of_another_shape_is_refused(measured: Any, sentence: str) -> None:
    with pytest.raises(MessageError, match=sentence):
        read_counted(MessageFields(measured))


@pytest.mark.parametrize("missing", ["lease", "commit", "params", "time_limit", "quick"])
def test_what_is_missing_is_named(missing: str) -> None:
    message = {name: value for name, value in read_golden(PROTOCOL, "run").items() if name != missing}
    with pytest.raises(MessageError, match=f"^{missing} must be"):
        read_assignment(MessageFields(message))


def test_a_kind_that_is_unknown_asks_for_an_update() -> None:
    with pytest.raises(MessageError, match="can't measure 'sweep': update it"):
        read_assignment(MessageFields({"kind": "sweep"}))


@pytest.mark.parametrize("body", [b"", b"\xff", b"NaN", b"[" * 100_000, b'{"a": 1e400}', b"1"])
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(MessageError):
        read_message(body)


@pytest.mark.parametrize(
    "phases", [{"learn": 1}, {"learn": [1]}, {"learn": [1, "x"]}, {"learn": [1, 10**400]}]
)
def test_phases_are_pairs_of_finite_numbers(phases: Any) -> None:
    with pytest.raises(MessageError, match=r"phases\.learn must be"):
        read_pair(MessageFields({**read_golden(PROTOCOL, "pair"), "phases": phases}))
