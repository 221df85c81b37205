import pytest
from paceline.document_building.document_builder import _growth_interval

from tests.harness.conftest import Project, Value


def repetition_rows(*slopes: tuple[float, float, float]) -> list[dict[str, object]]:
    return [{"memory_growth": slope, "memory_growth_interval": [low, high]} for slope, low, high in slopes]


def test_one_repetition_has_its_slopes_interval() -> None:
    assert _growth_interval(repetition_rows((5.0, 4.0, 6.0))) == (4.0, 6.0)


def test_repetitions_that_differ_widen_it() -> None:
    assert _growth_interval(repetition_rows((5.0, 4.9, 5.1), (1.0, 0.9, 1.1), (9.0, 8.9, 9.1))) == (1.0, 9.0)


def test_repetitions_that_agree_do_not_narrow_it() -> None:
    assert _growth_interval(repetition_rows(*[(5.0, 2.0, 8.0)] * 3)) == (2.0, 8.0)


def test_without_a_slope_there_is_no_interval() -> None:
    assert _growth_interval([{"memory_growth": None, "memory_growth_interval": None}]) is None


LEAK = """
import paceline
kept = []
for at in paceline.steps(range(10**6)):
    {}
    sum(range(2000))
"""


@pytest.mark.parametrize(
    ("work", "leaks"), [("kept.append(bytearray(10_000))", True), ("bytearray(10_000)", False)]
)
def test_a_leak_is_a_metric_whose_interval_leaves_out_zero(
    project: Project, value: Value, work: str, leaks: bool
) -> None:
    project.write(LEAK.format(work), steps=8000, warmup_steps=200)
    growth = value(project.measure("--quick"), "memory_growth")
    assert (growth["low"] > 5e6) == leaks
    assert (growth["high"] < 1e6) != leaks
