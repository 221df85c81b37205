"""What a report says of the step itself, and of its functions."""

from __future__ import annotations

import pytest
from paceline.reports.report import NAME_WIDTH, _locate_function
from paceline.reports.report_sections import step_lines


def test_a_pass_is_told_in_the_number_that_is_printed() -> None:
    passes = {"forward": 1.0025, "backward": 1.0, "optimizer": 2.0}
    step = {"kind": "optimizer", "owner": "Adam", "chosen": False, "passes": passes}
    assert step_lines(step)[-1] == "a step holds 1 forward pass, 1 backward pass, 2 optimizer steps"
    (line,) = step_lines(step | {"passes": {}, "succeeded": "Adam"})
    assert "of Adam, which took over from another Adam;" in line


@pytest.mark.parametrize("name", ["Categorical.log_prob", "f.<locals>." * 9 + "log_prob"])
def test_a_function_in_a_long_path_keeps_its_name(name: str) -> None:
    told = _locate_function(name, "/srv/" * 20 + "distributions/categorical.py:134")
    assert len(told) == NAME_WIDTH
    assert ".log_prob  ..." in told.replace(">.log", ".log")
    assert told.endswith("categorical.py:134")
