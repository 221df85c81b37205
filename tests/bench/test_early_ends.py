"""Repetitions that end early, in simulated series with known answers."""

from bench.detection.early_ends import (
    MOST,
    PRECISION,
    NoiseModel,
    end_early,
    tally_model,
)


def test_alike_repetitions_end_and_others_do_not() -> None:
    assert end_early([1.0, 1.001, 1.002, 2.0, 3.0], PRECISION) == [1.0, 1.001, 1.002]
    assert len(end_early([1.0, 1.1, 0.9, 1.2, 1.0], PRECISION)) == MOST


def test_ending_early_makes_no_false_changes_and_loses_no_steps() -> None:
    """Of both the same seeds; the margins are several times what the figures' noise allows."""
    noise = NoiseModel("test", within=0.004, between=0.008)
    whole, early = (tally_model(noise, 40, precision) for precision in (0.0, PRECISION))
    assert early.repetitions < 4 < whole.repetitions
    assert early.false_changes <= whole.false_changes + 0.5
    assert early.found >= whole.found - 0.1
