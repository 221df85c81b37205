"""Phases of real pairs are read as a host reads them, and asked what the site asks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench import phase_pairs
from bench.phase_pairs import PhasesOfPair, Times
from bench.small_proofs import measure_sides


def test_a_pair_is_measured_for_real(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(phase_pairs.SCRIPT)
    (tmp_path / "paceline.toml").write_text(phase_pairs.MANIFEST.replace("steps = 300", "steps = 60"))
    base, head = measure_sides(tmp_path, 0)
    pair = phase_pairs.read_phases(base, head, index=0, seconds=1.0, load=1.0)
    assert set(phase_pairs.SHARES) < set(pair.typical)
    assert 0.15 < phase_pairs.measured_share([pair], "update") < 0.45


def draw_pairs(count: int) -> list[PhasesOfPair]:
    """Means that lie three tenths apart, typical steps that lie a thousandth apart."""
    drawn = np.random.default_rng(1)

    def draw_phases(noise: float) -> dict[str, Times]:
        return {
            name: (share * drawn.normal(1, noise), share * drawn.normal(1, noise))
            for name, share in phase_pairs.SHARES.items()
        }

    return [
        PhasesOfPair(index % 2 == 0, draw_phases(0.3), draw_phases(0.001), 0.0, 3.0, 1.0)
        for index in range(count)
    ]


def test_typical_steps_name_the_phase_and_narrow_a_claim() -> None:
    pairs = draw_pairs(24)
    longer = [pair.with_longer_phase("log", 1.2) for pair in pairs]
    assert phase_pairs.named_phase(longer, by_steps=True) == "log"
    assert phase_pairs.named_phase(longer, by_steps=False) != "log"
    intervals = [phase_pairs.claim_interval(pairs, "phase_share:update", look) for look in phase_pairs.LOOKS]
    by_means, by_steps = (high / low - 1 for low, high in intervals)
    assert by_steps < 0.8 * by_means
