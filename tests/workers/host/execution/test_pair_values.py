"""What is read off the two documents of a pair."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workers.host.execution import pair_values


def fake_document(waited: float = 0.0, **fields: Any) -> Any:
    """Of a document what is read of a pair."""
    repetition = SimpleNamespace(waited=waited, step_times={"thinned": fields.pop("steps", None)})
    return SimpleNamespace(**{"repetitions": (repetition,), "warnings": (), "scaling": None, **fields})


def fake_doubt(code: str, *, taints: bool = True) -> Any:
    return SimpleNamespace(code=code, taints=taints)


@pytest.mark.parametrize(("swept", "disturbed"), [(True, True), (False, False)])
def test_a_sweep_beside_other_work_disturbs_what_is_read_off_it(swept: bool, disturbed: bool) -> None:
    document = fake_document(
        warnings=(fake_doubt("scaling_contention", taints=False),), scaling=swept or None
    )
    assert pair_values.is_disturbed(document, in_turns=False) is disturbed


@pytest.mark.parametrize(
    ("code", "in_sequence", "in_turns"),
    [
        ("processor_contention", True, False),
        ("clock_change", True, False),
        ("throttling", True, True),
        ("warmup_never_ended", False, False),
    ],
)
def test_only_what_other_work_did_disturbs_a_pair(code: str, in_sequence: bool, in_turns: bool) -> None:
    """A change of the clock meets both sides of two that take turns; what they waited is taken off."""
    document = fake_document(waited=0.5, warnings=(fake_doubt(code),))
    told = tuple(pair_values.is_disturbed(document, in_turns=turns) for turns in (False, True))
    assert told == (in_sequence, in_turns)


def test_the_slowest_steps_are_those_that_waited() -> None:
    """Of a mean what was waited is taken off, of a quantile it can't be."""
    document = fake_document(waited=0.5, warnings=(fake_doubt("processor_contention"),))
    told = [pair_values.is_disturbed(document, True, name) for name in ("throughput", "step_time_p99")]
    assert told == [False, True]


def test_who_hardly_ran_is_disturbed() -> None:
    assert pair_values.is_disturbed(fake_document(waited=0.85), in_turns=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("step_time", 0.75), ("throughput", 4 / 3), ("peak_memory", 1.0), ("step_time_p99", 1.0)],
)
def test_what_turns_waited_for_a_processor_is_taken_off(name: str, value: float) -> None:
    row: Any = SimpleNamespace(name=name, value=1.0)
    assert pair_values.value_of_metric(row, fake_document(0.25), in_turns=True) == pytest.approx(value)
    assert pair_values.value_of_metric(row, fake_document(0.25), in_turns=False) == 1.0


def test_steps_of_a_long_window_are_kept_a_few_at_a_time() -> None:
    base, head = (
        fake_document(steps={"every": 1, "values": [factor * (index + 1) for index in range(450)]})
        for factor in (1.0, 2.0)
    )
    steps = pair_values.steps_of_both(base, head)
    assert steps["base"][:2] == [2.0, 5.0]
    assert len(steps["base"]) == len(steps["head"]) == 150
    assert steps["head"][-1] == 2 * steps["base"][-1] == 898.0


@pytest.mark.parametrize("values", [[1.0] * 31, [1.0] * 29 + [0.0], []])
def test_unlike_windows_have_no_steps_in_common(values: list[float]) -> None:
    base, head = (fake_document(steps={"every": 1, "values": steps}) for steps in ([1.0] * 30, values))
    assert pair_values.steps_of_both(base, head) == {}


def test_what_no_site_keeps_by_its_name_is_left_out() -> None:
    rows = [
        SimpleNamespace(name=name, phase=None, kind="quality", unit="1", better="higher", value=1.0)
        for name in ("quality.return", f"quality.{'x' * 190}")
    ]
    document = fake_document(metrics=rows)
    assert list(pair_values.others_of_both(document, document)) == ["quality.return"]
