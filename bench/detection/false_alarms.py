"""False alarms and alerts where nothing changes: `python -m bench.detection.false_alarms [SERIES]`.

The series are simulated: none was measured on a machine, and real runs of one commit show other noise. With
`--data FOLDER` the budget of false alerts is tried on the folder's change-free histories too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from bench.detection.null_models import NULL_MODELS, simulate_null
from bench.detection.printing import print_tables
from bench.detection.scoring import Alarms, count_false_alarms
from bench.detection.trials import Trial, load_trials
from dashboard.detection import FalseAlarmBudget, detect, shift_p_value, suspect

SERIES = 20
POINTS = 150
HEADLINES = 6  # series of a project
QUIET = 30  # commits before the first that may raise an alert
BUDGETS = (1.0, 10.0)  # false alerts per 100 commits
COLUMNS = [(per_100_commits, checked) for per_100_commits in BUDGETS for checked in (False, True)]


def false_alarm_table(count: int) -> Iterator[str]:
    """False alarms per 1,000 points of each null model."""
    yield "| null model | `detect` | `suspect` |"
    yield "|---|---|---|"
    for model in NULL_MODELS:
        trials = [Trial(simulate_null(model, seed, POINTS).tolist()) for seed in range(count)]
        cells = []
        for detector in (detect, suspect):
            found = [count_false_alarms(detector, trial) for trial in trials]
            total = Alarms(sum(alarms.count for alarms in found), sum(alarms.points for alarms in found))
            cells.append(f"{total.per_1000:.1f}")
        yield f"| {model} | " + " | ".join(cells) + " |"


def budget_heads() -> list[str]:
    """The heads of a table of budgets."""
    return [f"{budget:g}, {'checked' if checked else 'unchecked'}" for budget, checked in COLUMNS]


def budget_table(projects: int) -> Iterator[str]:
    """False alerts per 100 commits of projects whose headline series all have one null model."""
    yield "| null model | " + " | ".join(budget_heads()) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    for model in NULL_MODELS:
        cells = []
        for per_100_commits, checked in COLUMNS:
            alerts = [alerts_of_null_model(model, seed, per_100_commits, checked) for seed in range(projects)]
            cells.append(f"{100 * sum(alerts) / projects / (POINTS - QUIET):.1f}")
        yield f"| {model} | " + " | ".join(cells) + " |"


def alerts_of_null_model(model: str, seed: int, per_100_commits: float, checked: bool) -> int:
    """The alerts of one project whose series all have one null model."""
    histories = [simulate_null(model, HEADLINES * seed + k, POINTS).tolist() for k in range(HEADLINES)]
    return count_false_alerts(histories, per_100_commits, checked)


def count_false_alerts(histories: Sequence[Sequence[float]], per_100_commits: float, checked: bool) -> int:
    """The alerts of one project; each is refuted at once if they are checked, and its level stays."""
    budget, since, count = FalseAlarmBudget(per_100_commits), [0] * len(histories), 0
    for n in range(QUIET, min(map(len, histories))):
        p_values = {
            str(k): cached_p_value(tuple(values), n + 1, since[k]) for k, values in enumerate(histories)
        }
        decision, budget = budget.decide(p_values)
        count += bool(decision.raised)
        for key in decision.raised:
            since[int(key)] = n - 3
        if decision.raised and checked:
            budget = budget.after_refutation()
    return count


@lru_cache(maxsize=100_000)
def cached_p_value(values: tuple[float, ...], n: int, since: int) -> float:
    """That of the first n values, kept: the columns of a table ask for the same ones."""
    return shift_p_value(values[:n], since)


def measured_budget_table(trials: Sequence[Trial]) -> Iterator[str]:
    """The same of projects put together from six change-free histories each, of nearly one length."""
    yield "| histories | " + " | ".join(budget_heads()) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    for group, name in (("permuted", "in random order"), ("real", "as they are")):
        histories = sorted((trial.values for trial in trials if trial.group == group), key=len)
        firsts = range(0, len(histories) - HEADLINES + 1, HEADLINES)
        projects = [histories[k : k + HEADLINES] for k in firsts]
        if not projects:
            continue
        commits = sum(min(map(len, project)) - QUIET for project in projects)
        counts = [sum(count_false_alerts(project, *column) for project in projects) for column in COLUMNS]
        cells = " | ".join(f"{100 * count / commits:.1f}" for count in counts)
        yield f"| {name} | {cells} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description="Measure false alarms and false alerts.")
    parser.add_argument("series", type=int, nargs="?", default=SERIES, help="simulated series in each cell")
    parser.add_argument(
        "--data", type=Path, help="folder with measured histories, which are put into projects"
    )
    options = parser.parse_args(arguments)
    tables = [false_alarm_table(options.series), budget_table(max(options.series // 10, 1))]
    if options.data:
        tables.append(measured_budget_table(load_trials(options.data).change_free))
    print_tables(tables)


if __name__ == "__main__":
    main()
