"""What change detectors are tried on: series with known answers, from a folder of files or simulated.

A folder holds `null.json`, `null_var.json`, `online.json`, `offline.json`, `real_gpu.json` and `tcpd.json`,
lists of objects with `values` and, by file, `kind` and `base`, `variant`, `tau` and `step_pct`, `taus`,
`annotations`. `noise.json` names the `source` of each `base`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.detection.null_models import NULL_MODELS, simulate_null

SIMULATED_STEPS = (3, 5, 10)
SIMULATED_POINTS = 150
SIMULATED_SERIES = 4  # of each model


@dataclass(frozen=True, slots=True)
class Trial:
    """A series, where it changes, and what it is a trial of: its group (kind or variant) and its source.

    A planted step of so many `percent` goes up by that factor, or down by it where its `sign` is -1.
    """

    values: Sequence[float]
    taus: tuple[int, ...] = ()
    group: str = ""
    source: str = ""
    percent: int = 0
    sign: int = 1


@dataclass(slots=True)
class Trials:
    """All tracks; an empty one isn't tried."""

    change_free: list[Trial] = field(default_factory=list)
    disturbed: list[Trial] = field(default_factory=list)
    online: list[Trial] = field(default_factory=list)
    device: list[Trial] = field(default_factory=list)
    offline: list[Trial] = field(default_factory=list)
    annotated: list[tuple[Sequence[float], Mapping[str, Sequence[int]]]] = field(default_factory=list)


def load_trials(folder: Path) -> Trials:
    """The trials of a folder. Raises FileNotFoundError for a file that isn't there."""
    sources = {row["id"]: row["source"].split(":")[-1] for row in read_rows(folder, "noise")}

    def trials(name: str) -> list[Trial]:
        return [
            parse_trial(row, sources.get(row.get("base"), row.get("source", "")))
            for row in read_rows(folder, name)
        ]

    return Trials(
        change_free=trials("null"),
        disturbed=trials("null_var"),
        online=trials("online"),
        device=trials("real_gpu"),
        offline=trials("offline"),
        annotated=[(row["values"], row["annotations"]) for row in read_rows(folder, "tcpd")],
    )


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The objects of one file."""
    read: list[dict[str, Any]] = json.loads((folder / f"{name}.json").read_text())
    return read


def parse_trial(row: Mapping[str, Any], source: str) -> Trial:
    """One object of a file."""
    taus = tuple(row.get("taus", [row["tau"]] if "tau" in row else []))
    group = row.get("kind") or row.get("variant", "")
    return Trial(row["values"], taus, group, source, row.get("step_pct", 0))


def simulate_trials() -> Trials:
    """Series of every null model, as they are and with a step; nothing of this has been measured anywhere."""
    change_free = [trial for model in NULL_MODELS for trial in null_trials(model)]
    shuffled = [
        Trial(np.random.default_rng(k).permutation(np.asarray(trial.values)).tolist(), group="permuted")
        for k, trial in enumerate(change_free)
    ]
    real = [Trial(trial.values, group="real", source=trial.source) for trial in change_free]
    stepped = [trial for model in NULL_MODELS for trial in step_trials(model)]
    offline = [Trial(trial.values, trial.taus) for trial in stepped if trial.percent > SIMULATED_STEPS[0]]
    return Trials(change_free=real + shuffled, disturbed=change_free, online=stepped, offline=offline)


def null_trials(model: str) -> Iterator[Trial]:
    """Series of a model, in which nothing changes."""
    for seed in range(SIMULATED_SERIES):
        yield Trial(simulate_null(model, seed, SIMULATED_POINTS).tolist(), group=model, source=model)


def step_trials(model: str) -> Iterator[Trial]:
    """Series of a model with one step, up or down."""
    for k, percent in enumerate(SIMULATED_STEPS):
        values = simulate_null(model, 1000 + k, 100)
        tau = 60 + 3 * k
        values[tau:] *= (1 + percent / 100) ** (1 if k % 2 else -1)
        yield Trial(values.tolist(), (tau,), model, model, percent)
