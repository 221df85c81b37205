"""The cause class by facts alone: what was proved, what moved around the commits, what they touched."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.regressions.decision.cause_class import (
    CauseClass,
    CauseFacts,
    Confounders,
    SentinelMove,
    TouchedFiles,
    decide_cause,
)
from dashboard.regressions.decision.facts import Commit, ExperimentVerdict, Metric, Series
from dashboard.sentences.regressions.causes import cause_sentence

CODE = TouchedFiles(known=True, code=("replay.py",))
ASKED = TouchedFiles(known=True, install=("requirements.txt",))
BOTH = TouchedFiles(known=True, code=("replay.py",), install=("requirements.txt",))
DEFINED = TouchedFiles(known=True, definition=(("steps", "100", "200"),))
NUMPY = (("numpy", "1.26", "2.0"),)
DRIVER = (("driver", "550.1", "560.2"),)
BLAMED, SPARED = (("replay.py:push", True),), (("replay.py:push", False),)


def sentinel_move(ratio: float, moved: bool = True) -> SentinelMove:
    return SentinelMove(
        machine="bench-1",
        commit="cccccccccc",
        metric="step_time",
        ratio=ratio,
        low=ratio - 0.02,
        high=ratio + 0.02,
        after="2026-03-04 06:00",
        before="2026-03-05 06:00",
        moved=moved,
        worse=ratio,
    )


def proof_with(verdict: str) -> ExperimentVerdict:
    base, head = (Commit(place, f"{place}" * 40, "main", place) for place in (1, 2))
    series = Series(1, 1, Metric("step_time", "time"))
    return ExperimentVerdict(1, 1, "proof", series, base, head, verdict, 1.0, 1.4, machine="bench-1")


CONFOUNDERS = ("software", "system", "machines", "sentinel", "calibration")


def cause_facts(state: str, **facts: Any) -> CauseFacts:
    moved = {name: facts.pop(name) for name in CONFOUNDERS if name in facts}
    return CauseFacts(state=state, confounders=Confounders(**moved), **facts)


def decided_cause(state: str, **facts: Any) -> str:
    return decide_cause(cause_facts(state, worse=1.4, **facts)).cause


def evidence_sentences(facts: CauseFacts) -> tuple[str, ...]:
    return tuple(cause_sentence(evidence.as_json()) for evidence in decide_cause(facts).evidence)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"touched": CODE}, "code"),
        ({"touched": TouchedFiles()}, "code"),
        ({"touched": ASKED, "software": NUMPY}, "dependency"),
        ({"touched": ASKED}, "dependency"),
        ({"touched": BOTH, "software": NUMPY, "suspects": BLAMED}, "code"),
        ({"touched": BOTH, "software": NUMPY, "suspects": SPARED}, "dependency"),
        ({"touched": BOTH, "software": NUMPY}, "code"),
        ({"touched": CODE, "software": NUMPY, "suspects": SPARED}, "code"),
        ({"touched": DEFINED}, "benchmark definition"),
        ({"touched": CODE, "sentinel": sentinel_move(1.4)}, "code"),
    ],
)
def test_what_is_confirmed_the_commits_did(facts: dict[str, Any], cause: str) -> None:
    assert decided_cause("confirmed", proof=proof_with("confirmed"), **facts) == cause


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, "noise"),
        ({"sentinel": sentinel_move(1.4)}, "machine"),
        ({"sentinel": sentinel_move(1.05)}, "noise"),
        ({"sentinel": sentinel_move(0.7)}, "noise"),
        ({"sentinel": sentinel_move(1.4, moved=False)}, "noise"),
        ({"calibration": 1.3}, "machine"),
        ({"calibration": 1.02}, "noise"),
        ({"machines": (("machine", "bench-1", "bench-2"),)}, "machine"),
        ({"system": DRIVER, "sentinel": sentinel_move(1.4)}, "driver or system"),
    ],
)
def test_what_is_refuted_something_else_did(facts: dict[str, Any], cause: str) -> None:
    assert decided_cause("refuted", proof=proof_with("refuted"), touched=CODE, **facts) == cause


def test_what_is_undecided_is_the_machines_only_if_that_moved() -> None:
    assert decided_cause("undecided") == ""
    assert decided_cause("undecided", sentinel=sentinel_move(1.3)) == "machine"


def test_what_nobody_has_proved_has_no_cause_yet() -> None:
    assert decide_cause(cause_facts("suspected", worse=1.4, sentinel=sentinel_move(1.4))) == CauseClass(
        "", ()
    )


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"system": DRIVER}, "driver or system"),
        ({"software": NUMPY}, "dependency"),
    ],
)
def test_a_new_environment_is_told_as_what_it_is(facts: dict[str, Any], cause: str) -> None:
    assert decided_cause("suspected", environment_only=True, **facts) == cause


def test_a_proof_outweighs_the_environment() -> None:
    assert (
        decided_cause(
            "confirmed", environment_only=True, system=DRIVER, proof=proof_with("confirmed"), touched=CODE
        )
        == "code"
    )


def test_a_limit_alone_has_no_cause() -> None:
    assert decided_cause("confirmed", limit_alone=True, touched=CODE) == ""


def test_the_evidence_of_a_machine_says_when_and_by_how_much() -> None:
    facts = cause_facts("refuted", worse=1.4, sentinel=sentinel_move(1.3), proof=proof_with("refuted"))
    assert evidence_sentences(facts) == (
        "The machine bench-1 moved: its sentinel cccccccccc, always the same code, had step time +30 % "
        "[28, 32] between 2026-03-04 06:00 and 2026-03-05 06:00 UTC.",
        "Interleaved runs on bench-1, which stood still for both commits, refute it.",
    )


def test_the_evidence_of_a_dependency_names_packages_and_files() -> None:
    facts = cause_facts("confirmed", touched=ASKED, software=NUMPY)
    assert evidence_sentences(facts)[:2] == (
        "Installed otherwise: numpy 1.26 → 2.0.",
        "Asked for in: requirements.txt.",
    )


def test_the_evidence_of_code_names_the_function() -> None:
    facts = cause_facts("confirmed", touched=CODE, suspects=BLAMED, by_counter=True)
    assert evidence_sentences(facts) == (
        "The suspect replay.py:push was changed.",
        "Exact counters say so, which no machine and no driver moves.",
    )


def test_a_long_list_is_cut() -> None:
    listed = {"code": "code changed", "items": list("abcde"), "count": 5}
    assert cause_sentence(listed) == "Code was changed: a, b, c and 2 more."
