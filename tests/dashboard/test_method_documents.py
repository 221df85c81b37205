"""What docs/method/ says in numbers is what the code does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from paceline.measured.turns import BLOCK_SECONDS

from dashboard import judged_counters
from dashboard.detection import EFFECT_FLOORS, guards, paired_parts, paired_steps, pairs
from dashboard.detection.common_noise import FEWEST_OTHERS
from dashboard.detection.parts import LEAST_OF_WHOLE
from dashboard.experiments import DEFAULT_PRECISION, interleaving, precedence, verdicts
from dashboard.host_protocol.messages import MOST_STEPS
from dashboard.models import Experiment, Project
from dashboard.querysets.sentinels import MOVED_WITHIN
from dashboard.regressions import apply, branch_causes, changes, false_alarm_budget
from dashboard.regressions.decision import (
    cause_class,
    continuation,
    gradual_changes,
    primary_change,
    repair,
    residual_cause,
)
from dashboard.regressions.explanation import left_over, phase_shares, profiles, suspects, tensor_operations
from dashboard.regressions.series import history
from dashboard.repositories.history import MOST_COMMITS
from dashboard.runs import remeasuring
from dashboard.sentences.regressions import learning
from dashboard.sentinels import movement, pinning
from workers.host.execution import pair_values

METHOD = Path(__file__).resolve().parents[2] / "docs/method"
PROJECT, EXPERIMENT = Project(), Experiment()


@pytest.mark.parametrize(
    ("page", "numbers", "expected", "sentence"),
    [
        (
            "experiments",
            (pairs.ERROR, EXPERIMENT.error),
            (0.01, 0.01),
            "in at most one of a hundred experiments",
        ),
        ("experiments", pairs.FEWEST_PAIRS, 4, "Fewer than four pairs have no interval"),
        ("learning", EFFECT_FLOORS["quality"].long, 0.1, "by a tenth of the level before or more"),
        ("learning", guards.LARGE_OF_ONE_SEED, 0.5, "only where half of the level is lost"),
        ("learning", learning.LEAST_PACE, 0.03, "surely moved by 3 % or more"),
        ("learning", PROJECT.false_alerts_per_100_commits, 1, "one false alert per 100 commits"),
        ("experiments", pairs.FEWEST_TO_BOUND, 8, "from eight pairs on one that is far slower"),
        ("experiments", BLOCK_SECONDS, 0.03, "One computes for 30 ms while the other sleeps"),
        ("experiments", interleaving.MEMORY_SHARE / 2, 0.25, "at most a quarter of the machine's memory"),
        ("experiments", pairs.HALF, 0.5, "lies below half of the suspected step"),
        (
            "experiments",
            (PROJECT.experiment_pairs, PROJECT.experiment_minutes),
            (400, 20),
            "up to 20 minutes, or 400 pairs",
        ),
        ("experiments", verdicts.FEWEST_PAIRS_OF_HOPELESS, 16, "From 16 pairs on it ends undecided"),
        ("experiments", verdicts.HOPELESS_CHANCE, 0.05, "in fewer than five of a hundred cases"),
        (
            "experiments",
            (apply.FEWEST_BISECTION_PAIRS, apply.BISECTION_PAIRS_PER_PROOF_PAIR),
            (24, 4),
            "four times as many pairs as the proof did, and 24 at least",
        ),
        ("experiments", pair_values.MOST_WAITED, 0.8, "unless a side waited for four fifths of its window"),
        (
            "experiments",
            (paired_steps.LARGEST_STEP, MOST_STEPS),
            (0.1, 200),
            "at most 200 of them",
        ),
        ("experiments", paired_steps.KIND_FACTOR, 1.5, "half as long again as most"),
        (
            "experiments",
            (paired_steps.ERRORS_OF_MEAN, paired_steps.LARGEST_STEP),
            (3, 0.1),
            "with three standard errors on both sides",
        ),
        ("experiments", paired_steps.FEWEST_STEPS, 20, "where a pair has fewer than 20 steps"),
        ("experiments", paired_steps.FEWEST_TO_BOUND, 8, "From eight pairs on one far from the others"),
        (
            "experiments",
            (LEAST_OF_WHOLE, EFFECT_FLOORS["time"].long),
            (0.005, 0.03),
            "what is relevant is 0.5 % of the step here, not the 3 % of a step that shows by itself",
        ),
        (
            "experiments",
            (FEWEST_OTHERS, paired_parts.LEAST_TO_COMPARE),
            (3, 0.03),
            "It takes three of them with 3 % of the step each",
        ),
        (
            "experiments",
            (paired_parts.MADE_UP_SHARE, paired_parts.LOST_SHARE),
            (0.75, 0.65),
            "two thirds of the step (0.65) have to be left by that count",
        ),
        ("experiments", DEFAULT_PRECISION, 0.01, "(±1 % by default)"),
        ("experiments", verdicts.FEWEST_EXACT, 2, "is known after two pairs"),
        ("experiments", Experiment.MOST_ATTEMPTS, 3, "lost three times, undecided"),
        ("experiments", precedence.GRACE_PERIOD, timedelta(minutes=20), "has worked for 20 minutes"),
        ("experiments", PROJECT.experiment_share, 0.25, "share of its time (a quarter)"),
        (
            "bisection",
            (pairs.NEARLY_ALL, residual_cause.REACH, residual_cause.MOVED_ON, residual_cause.WORTH_A_PROOF),
            (0.75, 3, 1 / 3, 0.5),
            "(less than three quarters)",
        ),
        ("bisection", MOST_COMMITS, 1000, "of more than 1,000 commits stay named as a whole"),
        ("regressions", history.RECENT, 400, "the newest 400 points of a series"),
        (
            "detection",
            (history.RECENT, history.NEWEST),
            (400, 2000),
            "by its newest 400 points; by its newest 2,000",
        ),
        ("regressions", history.FROZEN_SHARE, 0.1, "in the oldest tenth of them"),
        (
            "regressions",
            judged_counters.LARGE_RATIO,
            1.05,
            "5 % more `function_calls` or `tensor_operations`",
        ),
        ("regressions", gradual_changes.TOGETHER_WITHIN, 100, "add up to so much within 100 commits"),
        (
            "detection",
            (gradual_changes.TOGETHER_WITHIN, gradual_changes.MOST_COMMITS, repair.LEFT_OVER),
            (100, 400, 0.2),
            "over at most 400 commits, and ends where that level is left again by four",
        ),
        ("regressions", changes.STABLE_WITHIN, 2, "within two measured commits of it"),
        ("regressions", primary_change.MUCH_LARGER, 1.5, "half as much again as what is proved"),
        ("regressions", repair.LEFT_OVER, 0.2, "leaves no more than a fifth of the step"),
        ("regressions", repair.LEFT_OF_PHASE, 0.3, "must have got seven tenths of its step back"),
        ("regressions", repair.LEAST_BACK, 0.3, "at least three tenths of the step"),
        ("regressions", left_over.LEAST_SHARE, 0.5, "Where a phase explains at least half of the step"),
        ("regressions", left_over.FEWEST_OTHERS, 4, "if there are four or more"),
        ("regressions", branch_causes.LARGER_CAUSE, 1.5, "unless it is more than half as large again"),
        ("regressions", continuation.LARGER_THAN_DECIDED, 1.5, "at up to one and a half times its size"),
        ("causes", cause_class.EXPLAINING_PART, 0.5, "shows at least half of the step"),
        ("explanation", phase_shares.WINDOW_COMMITS, 10, "at up to ten commits on both sides"),
        ("explanation", phase_shares.LEAST_SHARE, 0.1, "if it explains a tenth or more"),
        ("explanation", phase_shares.MOST_OF_PHASE, 0.5, "as long as one nested phase holds at least half"),
        ("explanation", suspects.MOST_SUSPECTS, 10, "At most ten suspects"),
        ("explanation", suspects.OWN_TIME, 0.25, "at a quarter of the weight"),
        ("explanation", suspects.HELD_SHARE, 0.6, "hold six tenths of the growth"),
        ("explanation", (profiles.NEAREST, profiles.SLOWED_FACTOR), (3, 1.2), "of the nearest of three runs"),
        ("explanation", tensor_operations.MOST_OPERATIONS, 10, "at most ten tensor operations"),
        ("explanation", tensor_operations.LEAST_GROWTH_SHARE, 0.05, "less than 5 % of all growth"),
        ("sentinels", pinning.CASE_SEEN_WITHIN, timedelta(days=3), "measured in the last three days"),
        ("sentinels", pinning.MACHINE_SEEN_WITHIN, timedelta(hours=1), "seen in the last hour"),
        ("sentinels", pinning.STALE_AFTER, timedelta(hours=4), "older than four hours"),
        ("sentinels", pinning.DAILY, timedelta(days=1), "one that waited for a day is cancelled"),
        (
            "sentinels",
            movement.WINDOW_POINTS,
            5,
            "The five measurements before the one and the five after the other",
        ),
        ("sentinels", EFFECT_FLOORS["time"].long, 0.03, "(3 % for times)"),
        ("sentinels", MOVED_WITHIN, timedelta(weeks=2), "for two weeks"),
        ("sentinels", len(remeasuring.DELAYS), 2, "twice at most and later each time"),
        (
            "false_alarm_budget",
            PROJECT.false_alerts_per_100_commits,
            1,
            "A project accepts one false alert per 100 commits",
        ),
        (
            "false_alarm_budget",
            false_alarm_budget.PROOF_SHARE,
            0.5,
            "at most half of what the project has left",
        ),
    ],
)
def test_a_number_in_prose_is_the_codes(page: str, numbers: object, expected: object, sentence: str) -> None:
    assert numbers == pytest.approx(expected) if isinstance(expected, float) else numbers == expected
    assert sentence in " ".join((METHOD / f"{page}.md").read_text().split())


def test_every_page_opens_with_a_picture_and_a_paragraph() -> None:
    for page in METHOD.glob("*.md"):
        title, picture, paragraph = page.read_text().split("\n\n")[:3]
        assert title.startswith("# ")
        assert picture.startswith(("![", "```mermaid")), page.name
        if picture.startswith("!["):
            assert len(paragraph.split()) > 40, page.name
