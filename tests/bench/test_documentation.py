"""The documentation names what the package offers."""

from __future__ import annotations

from pathlib import Path

from bench import phase_pairs
from bench.detection import (
    close_causes,
    early_ends,
    false_alarms,
    lost_learning,
    phase_verdicts,
    stability,
    step_verdicts,
    verdicts,
)
from bench.detection.null_models import NULL_MODELS
from dashboard.detection.false_alarm_budget import DECAY
from dashboard.detection.history_fit import GROWTH, SETTLED
from dashboard.detection.identity import STABLE_WITHIN
from dashboard.detection.judgement import AVERAGE_PENALTY, DETECT_FROM, FEWEST_OF_AVERAGE
from dashboard.detection.rules import ALARM
from dashboard.detection.segmentation import KNOWN_COST
from dashboard.regressions.decision.decide import POINTS_BEFORE_BETWEEN_LEVELS
from dashboard.regressions.decision.next_step import INTO_LEVEL

METHOD = Path(__file__).parents[2] / "docs/method"
TEXT = " ".join(
    "".join((METHOD / f"{name}.md").read_text() for name in ("detection", "false_alarm_budget")).split()
)

BISECTION = " ".join((METHOD / "bisection.md").read_text().split())


def test_every_null_model_has_its_figures():
    for model in NULL_MODELS:
        assert TEXT.count(f"| {model} |") == 3


def test_the_constants_in_prose_are_those_of_the_code():
    assert f"costs {KNOWN_COST:g} of the penalty" in TEXT
    assert (ALARM.evidence, SETTLED, GROWTH, STABLE_WITHIN, DECAY) == (9.0, 96, 1 / 48, 2, 0.9)
    assert "nine times the variance" in TEXT
    assert "up to 96 and then whenever it has grown by a forty-eighth part" in TEXT
    assert "give or take two points" in TEXT
    assert (FEWEST_OF_AVERAGE, AVERAGE_PENALTY, DETECT_FROM) == (12, 2.0, 30)
    assert "a level costs twice its penalty; and a level needs twelve points" in TEXT
    assert (INTO_LEVEL, POINTS_BEFORE_BETWEEN_LEVELS) == (6, 8)
    assert "when eight more points were judged, pairs compare a commit six measured ones before" in BISECTION


def test_the_tables_have_the_columns_that_are_printed():
    simulated = (
        stability.cost_table(),
        stability.stability_table(1),
        false_alarms.false_alarm_table(1),
        false_alarms.budget_table(1),
    )
    for lines in (*simulated, false_alarms.measured_budget_table([])):
        assert next(lines) in TEXT


def test_the_tables_of_verdicts_are_those_that_are_printed():
    text = "".join((METHOD / f"{name}.md").read_text() for name in ("experiments", "bisection"))
    for lines in (verdicts.confirmation_table(1), verdicts.bisection_table(1), verdicts.measured_table([])):
        head, rule = next(lines), next(lines)
        assert f"{head}\n{rule}\n| " in text
    for kind in verdicts.KINDS:
        assert text.count(f"\n| {kind} |") == 2
    assert f"up to {verdicts.BUDGET} pairs" in " ".join(text.split())


def test_the_table_of_close_causes_is_the_one_that_is_printed():
    text = (METHOD / "bisection.md").read_text()
    for lines in (close_causes.cause_table(1), close_causes.filled_table(1)):
        assert f"{next(lines)}\n{next(lines)}\n| " in text
    for noise in close_causes.NOISES:
        for causes in close_causes.CAUSES:
            assert f"\n| {noise} | {causes} | " in text


def test_the_table_of_verdicts_by_phases_is_the_one_that_is_printed():
    text = (METHOD / "experiments.md").read_text()
    lines = phase_verdicts.phase_table(1)
    assert f"{next(lines)}\n{next(lines)}\n| " in text
    for machine in phase_verdicts.MACHINES:
        for share in phase_verdicts.SUSPECTED:
            for truth in phase_verdicts.TRUTHS:
                assert f"\n| {machine} | {share} | {truth} | " in text
    assert (phase_verdicts.STEP, phase_verdicts.MACHINES) == (0.01, {"calm": 0.007, "busy": 0.03})


def test_the_table_of_places_by_steps_is_the_one_that_is_printed():
    lines = step_verdicts.place_table(1)
    assert f"{next(lines)}\n{next(lines)}\n| " in (METHOD / "bisection.md").read_text()


def test_the_tables_of_phases_of_pairs_are_those_that_are_printed():
    text = (METHOD / "explanation.md").read_text()
    for table in (phase_pairs.noise_table, phase_pairs.named_table, phase_pairs.claim_table):
        lines = table([])
        assert text.count(f"{next(lines)}\n{next(lines)}\n| ") == 2


def test_the_table_of_verdicts_by_steps_is_the_one_that_is_printed():
    text = (METHOD / "experiments.md").read_text()
    lines = step_verdicts.step_table(1, 1)
    assert f"{next(lines)}\n{next(lines)}\n| " in text
    for machine in step_verdicts.MACHINES:
        for truth in step_verdicts.TRUTHS:
            assert text.count(f"\n| {machine} | {truth} | ") == 1 + (truth in step_verdicts.CHECKED)
    lines = step_verdicts.check_table(1, 1)
    assert f"{next(lines)}\n{next(lines)}\n| " in text
    for machine in step_verdicts.MACHINES:
        for truth in step_verdicts.CHECKED:
            assert f"\n| {machine} | {truth} | " in text
    assert (step_verdicts.FLOOR, step_verdicts.HELD_UP, 2 * step_verdicts.CHECK_ERROR) == (0.03, 50, 0.002)
    assert f"{step_verdicts.BUDGET} pairs of {step_verdicts.STEPS} steps at most" in text
    assert (step_verdicts.STEP, *step_verdicts.MACHINES.values()) == (0.01, 0.1, 0.4, 0.7)


def test_the_tables_of_losses_of_quality_are_those_that_are_printed():
    text = (METHOD / "learning.md").read_text()
    for lines in (lost_learning.unchanged_table(1), lost_learning.lost_table(1)):
        head, rule = next(lines), next(lines)
        assert f"{head}\n{rule}\n| " in text
    for training in lost_learning.TRAININGS:
        assert f"\n| {training} | {training.seeds} | " in text
    assert (lost_learning.TRIALS, lost_learning.COMMITS, lost_learning.REDRAWING) == (12, 100, 0.3)
    assert lost_learning.GUARD / lost_learning.LEVEL == 0.3


def test_every_noise_of_early_ends_has_its_figures():
    assert next(early_ends.early_ends_table(1)) in TEXT
    for model in early_ends.MODELS:
        assert TEXT.count(f"| {model.name} |") == 1
    assert f"steps of {early_ends.PLANTED_STEP:.0%}".replace("%", " %") in TEXT
    assert f"a precision of {100 * early_ends.PRECISION:g} % and five repetitions at most" in TEXT
    assert early_ends.MOST == 5
