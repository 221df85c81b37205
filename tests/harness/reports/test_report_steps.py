"""What a report says of the step itself."""

from __future__ import annotations

from paceline.reports.report_sections import step_lines


def test_a_pass_is_told_in_the_number_that_is_printed() -> None:
    passes = {"forward": 1.0025, "backward": 1.0, "optimizer": 2.0}
    step = {"kind": "optimizer", "owner": "Adam", "chosen": False, "passes": passes}
    assert step_lines(step)[-1] == "a step holds 1 forward pass, 1 backward pass, 2 optimizer steps"
