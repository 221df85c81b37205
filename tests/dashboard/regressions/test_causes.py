"""The cause class by facts alone: what was proved, what moved around the commits, what they touched."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from dashboard.regressions.causes import Facts, decide
from dashboard.regressions.installed import Touched
from dashboard.regressions.sentinels import Moved

from dashboard.models import Commit, Confirmation, Machine, Sentinel
from dashboard.regressions import causes

CODE = Touched(known=True, code=("replay.py",))
ASKED = Touched(known=True, install=("requirements.txt",))
BOTH = Touched(known=True, code=("replay.py",), install=("requirements.txt",))
DEFINED = Touched(known=True, definition=("steps 100 -> 200",))
NUMPY = ("numpy 1.26 -> 2.0",)
DRIVER = ("driver 550.1 -> 560.2",)
BLAMED, SPARED = (("replay.py:push", True),), (("replay.py:push", False),)


def sentinel(ratio: float, moved: bool = True) -> Moved:
    pinned = Sentinel(commit=Commit(hash="c" * 40), machine=Machine(name="bench-1"))
    times = [datetime(2026, 3, day, 6, tzinfo=UTC) for day in (4, 5)]
    return Moved(pinned, "step_time", ratio, ratio - 0.02, ratio + 0.02, *times, moved=moved, worse=ratio)


def proof(verdict: str) -> Confirmation:
    return Confirmation(verdict=verdict, machine=Machine(name="bench-1"))


def decided(state: str, **facts: Any) -> str:
    return decide(Facts(state=state, worse=1.4, **facts)).cause


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"touched": CODE}, "code"),
        ({"touched": Touched()}, "code"),
        ({"touched": ASKED, "software": NUMPY}, "dependency"),
        ({"touched": ASKED}, "dependency"),
        ({"touched": BOTH, "software": NUMPY, "suspects": BLAMED}, "code"),
        ({"touched": BOTH, "software": NUMPY, "suspects": SPARED}, "dependency"),
        ({"touched": BOTH, "software": NUMPY}, "code"),
        ({"touched": CODE, "software": NUMPY, "suspects": SPARED}, "code"),
        ({"touched": DEFINED}, "benchmark definition"),
        ({"touched": CODE, "sentinel": sentinel(1.4)}, "code"),
    ],
)
def test_what_is_confirmed_the_commits_did(facts: dict[str, Any], cause: str) -> None:
    assert decided("confirmed", proof=proof("confirmed"), **facts) == cause


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, "noise"),
        ({"sentinel": sentinel(1.4)}, "machine"),
        ({"sentinel": sentinel(1.05)}, "noise"),
        ({"sentinel": sentinel(0.7)}, "noise"),
        ({"sentinel": sentinel(1.4, moved=False)}, "noise"),
        ({"calibration": 1.3}, "machine"),
        ({"calibration": 1.02}, "noise"),
        ({"machines": ("machine bench-1 -> bench-2",)}, "machine"),
        ({"system": DRIVER, "sentinel": sentinel(1.4)}, "driver or system"),
    ],
)
def test_what_is_refuted_something_else_did(facts: dict[str, Any], cause: str) -> None:
    assert decided("refuted", proof=proof("refuted"), touched=CODE, **facts) == cause


def test_what_is_undecided_is_the_machines_only_if_that_moved() -> None:
    assert decided("undecided") == ""
    assert decided("undecided", sentinel=sentinel(1.3)) == "machine"


def test_what_nobody_has_proved_has_no_cause_yet() -> None:
    assert decide(Facts(state="suspected", worse=1.4, sentinel=sentinel(1.4))) == causes.Class("", ())


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"system": DRIVER}, "driver or system"),
        ({"software": NUMPY}, "dependency"),
    ],
)
def test_new_surroundings_are_told_as_what_they_are(facts: dict[str, Any], cause: str) -> None:
    assert decided("suspected", innocent=True, **facts) == cause


def test_a_proof_outweighs_the_surroundings() -> None:
    assert (
        decided("confirmed", innocent=True, system=DRIVER, proof=proof("confirmed"), touched=CODE) == "code"
    )


def test_a_limit_alone_has_no_cause() -> None:
    assert decided("confirmed", limit_alone=True, touched=CODE) == ""


def test_the_evidence_of_a_machine_says_when_and_by_how_much() -> None:
    found = decide(Facts(state="refuted", worse=1.4, sentinel=sentinel(1.3), proof=proof("refuted")))
    assert found.evidence == (
        "The machine bench-1 moved: its sentinel cccccccccc, always the same code, had step time +30.0 % "
        "[28.0, 32.0] between 2026-03-04 06:00 and 2026-03-05 06:00 UTC.",
        "Interleaved runs on bench-1, which stood still for both commits, refute it.",
    )


def test_the_evidence_of_a_dependency_names_packages_and_files() -> None:
    found = decide(Facts(state="confirmed", touched=ASKED, software=NUMPY))
    assert found.evidence[:2] == (
        "Installed otherwise: numpy 1.26 → 2.0.",
        "Asked for in: requirements.txt.",
    )


def test_the_evidence_of_code_names_the_function() -> None:
    found = decide(Facts(state="confirmed", touched=CODE, suspects=BLAMED, by_counter=True))
    assert found.evidence == (
        "The commits changed the suspect replay.py:push.",
        "Exact counters say so, which no machine and no driver moves.",
    )


def test_a_long_list_is_cut() -> None:
    assert causes.listed("Changed", tuple("abcde")) == "Changed: a, b, c and 2 more."
