"""Runs that other tools measured, as rows: one transaction, safe to repeat, no document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import connection, transaction
from django.utils import timezone
from paceline.manifest import case_key
from paceline.metrics import HEADLINE_LIMIT

from dashboard import runs
from dashboard.environments import compared_values, store_environments
from dashboard.imports import commits
from dashboard.imports.results import ImportedMetric, ImportedRun, ImportedValue, shorten_text
from dashboard.ingest import latest
from dashboard.models import Case, Commit, Configuration, Metric, Point, Pool, Project, Run, Series
from dashboard.name_lengths import LONGEST_KEY, LONGEST_METRIC
from dashboard.postgresql.bulk_copy import copy_new_rows
from dashboard.repositories import DETACHED

# Another tool's version of a benchmark is no number: what is imported is all of one version.
VERSION = 1
BATCH = 5000

ReportProgress = Callable[[int, int], None]
RunKey = tuple[int, int]
# A configuration, a metric and a phase.
SeriesKey = tuple[int, ImportedMetric, str]
# A series, a position, a run and the value.
NewPoint = tuple[int, int, int, ImportedValue]
COPY_POINTS = (
    "COPY dashboard_point (series_id, position, run_id, value, low, high, samples, tainted) FROM STDIN"
)


@dataclass(slots=True)
class ImportSummary:
    """What an import did. `unplaced`: commits that the repository doesn't know, which are shown unordered."""

    runs: int = 0
    points: int = 0
    corrected: int = 0
    unchanged: int = 0
    commits: int = 0
    unplaced: int = 0
    series: set[int] = field(default_factory=set)


def import_runs(
    target: Project | str, imported_runs: Sequence[ImportedRun], report_progress: ReportProgress | None = None
) -> tuple[Project, ImportSummary]:
    """Store into a project, or into one of this name that is made where there is none: all or nothing."""
    # Before anything is locked: it may take minutes.
    existing = Project.objects.filter(slug=target).first() if isinstance(target, str) else target
    known = None
    if existing:
        commits.fetch_repository(existing)
        known = commits.read_known_commits(existing, imported_runs)
    with transaction.atomic():
        project = commits.get_or_create_project(target) if isinstance(target, str) else target
        return project, _store_runs(project, imported_runs, known, report_progress)


def _store_runs(
    project: Project,
    imported_runs: Sequence[ImportedRun],
    known: commits.KnownCommits | None,
    report_progress: ReportProgress | None,
) -> ImportSummary:
    """Store what isn't there yet and correct what differs; raises ImportRefused, nothing is stored then.

    `report_progress` gets (runs stored, runs).
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        rows = commits.get_or_create_commits(project, imported_runs, known)
        if not project.repository:
            # Before there are points of them: each would be written a second time.
            commits.number_by_date(project)
            positions = dict(project.commits.values_list("pk", "position"))
            for row in rows.values():
                row.position = positions[row.pk]
        stored, new = _get_or_create_runs(project, imported_runs, rows, report_progress or (lambda *_: None))
        series = _get_or_create_series(imported_runs, stored)
        summary = _store_points(project, imported_runs, stored, series)
        summary.runs, summary.commits = new, len(rows)
        summary.unplaced = sum(row.branch == DETACHED for row in rows.values())
        _renew_latest(project, stored, summary.series)
    return summary


def _get_or_create_runs(
    project: Project,
    imported_runs: Sequence[ImportedRun],
    rows: dict[str, Commit],
    report_progress: ReportProgress,
) -> tuple[list[Run], int]:
    """The run of each measurement, in their order, and how many of them are new."""
    configurations = _get_or_create_configurations(project, imported_runs)
    keys = [
        (rows[imported.commit].pk, configuration.pk)
        for imported, configuration in zip(imported_runs, configurations, strict=True)
    ]
    existing = Run.objects.filter(configuration__case__project=project, origin=Run.Origin.IMPORTED)
    existing = existing.select_related("commit").defer("fingerprint")
    by_key = {(run.commit_id, run.configuration_id): run for run in existing}
    missing = {key: imported for key, imported in zip(keys, imported_runs, strict=True) if key not in by_key}
    by_pk = {row.pk: row for row in rows.values()}
    created = [_new_run(key, imported, by_pk[key[0]]) for key, imported in missing.items()]
    _store_environments(created)
    for start in range(0, len(created), BATCH):
        copy_new_rows(created[start : start + BATCH])
        report_progress(start, len(created))
    by_key |= dict(zip(missing, created, strict=True))
    return [by_key[key] for key in keys], len(created)


def _new_run(key: RunKey, imported: ImportedRun, commit: Commit) -> Run:
    when = imported.measured_at or imported.date
    return Run(
        commit=commit,
        configuration_id=key[1],
        project_id=commit.project_id,
        origin=Run.Origin.IMPORTED,
        repetitions=max((len(value.samples) for value in imported.values), default=0) or 1,
        time_limit=0,
        state=Run.State.DONE,
        progress=1,
        fingerprint=dict(imported.fingerprint),
        requested_at=when,
        finished_at=when,
        # It is judged with the whole history, not by itself.
        judged_at=timezone.now(),
    )


def _store_environments(runs: Iterable[Run]) -> None:
    """What the other tool says of the machine is compared as what a document says; CSV files say nothing."""
    described = [run for run in runs if run.fingerprint]
    keys = store_environments(compared_values(run.fingerprint, None) for run in described)
    for run, key in zip(described, keys, strict=True):
        run.environment_id = key


def _case_key(imported: ImportedRun) -> str:
    return shorten_text(case_key(imported.params), LONGEST_KEY)


def _get_or_create_configurations(
    project: Project, imported_runs: Sequence[ImportedRun]
) -> list[Configuration]:
    """That of each measurement, in their order."""
    cases, pools = _get_or_create_cases(project, imported_runs), _get_or_create_pools(imported_runs)
    by_key = {}
    for pool in pools.values():
        here = [imported for imported in imported_runs if imported.pool == pool.name]
        wanted = [(cases[imported.benchmark, _case_key(imported)], VERSION) for imported in here]
        for (case, _), row in runs.get_or_create_configurations(wanted, pool, quick=False).items():
            by_key[case, pool.pk] = row
    return [
        by_key[cases[imported.benchmark, _case_key(imported)].pk, pools[imported.pool].pk]
        for imported in imported_runs
    ]


def _get_or_create_cases(
    project: Project, imported_runs: Iterable[ImportedRun]
) -> dict[tuple[str, str], Case]:
    wanted = {(imported.benchmark, _case_key(imported)): imported for imported in imported_runs}
    rows = [
        Case(project=project, benchmark=benchmark, params=dict(imported.params), key=key)
        for (benchmark, key), imported in wanted.items()
    ]
    Case.objects.bulk_create(rows, ignore_conflicts=True)
    return {(row.benchmark, row.key): row for row in project.cases.all()}


def _get_or_create_pools(imported_runs: Iterable[ImportedRun]) -> dict[str, Pool]:
    names = {imported.pool for imported in imported_runs}
    Pool.objects.bulk_create([Pool(name=name) for name in sorted(names)], ignore_conflicts=True)
    return {row.name: row for row in Pool.objects.filter(name__in=names)}


def _get_or_create_metrics(values: Iterable[ImportedValue]) -> dict[ImportedMetric, Metric]:
    """The rows of imported metrics; one whose name has another unit here has its own unit in its name."""
    rows = {}
    for metric in dict.fromkeys(value.metric for value in values):
        row = _get_or_create_metric(metric, metric.name)
        if (row.unit, row.kind) != (metric.unit, metric.kind):
            name = f"{metric.name} ({metric.unit}, {metric.kind})"
            row = _get_or_create_metric(metric, shorten_text(name, LONGEST_METRIC))
        rows[metric] = row
    return rows


def _get_or_create_metric(metric: ImportedMetric, name: str) -> Metric:
    facts = {"unit": metric.unit, "kind": metric.kind}
    return Metric.objects.get_or_create(name=name, better=metric.better, defaults=facts)[0]


def _get_or_create_series(
    imported_runs: Sequence[ImportedRun], stored: Sequence[Run]
) -> dict[SeriesKey, Series]:
    """Those of the values; of each configuration the first six of whole steps may raise a suspicion."""
    metrics = _get_or_create_metrics(value for imported in imported_runs for value in imported.values)
    wanted = {
        (run.configuration_id, value.metric, value.phase): None
        for run, imported in zip(stored, imported_runs, strict=True)
        for value in imported.values
    }
    existing = Series.objects.filter(configuration__in={key for key, *_ in wanted})
    by_key = {(row.configuration_id, row.metric_id, row.phase): row for row in existing}
    headlines = Counter(row.configuration_id for row in by_key.values() if row.headline)
    missing = []
    for configuration, metric, phase in wanted:
        if (configuration, metrics[metric].pk, phase) in by_key:
            continue
        # Phases explain; the whole step raises the suspicion.
        headline = not phase and headlines[configuration] < HEADLINE_LIMIT
        headlines[configuration] += headline
        missing.append(
            Series(configuration_id=configuration, metric=metrics[metric], phase=phase, headline=headline)
        )
    created = Series.objects.bulk_create(missing, batch_size=BATCH)
    by_key |= {(row.configuration_id, row.metric_id, row.phase): row for row in created}
    return {(key, metric, phase): by_key[key, metrics[metric].pk, phase] for key, metric, phase in wanted}


def _store_points(
    project: Project,
    imported_runs: Sequence[ImportedRun],
    stored: Sequence[Run],
    series: dict[SeriesKey, Series],
) -> ImportSummary:
    existing = Point.objects.filter(run__commit__project=project, run__origin=Run.Origin.IMPORTED)
    by_key = {(point.run_id, point.series_id): point for point in existing}
    summary = ImportSummary()
    new: list[NewPoint] = []
    changed: list[Point] = []
    for run, imported in zip(stored, imported_runs, strict=True):
        for value in imported.values:
            row = series[run.configuration_id, value.metric, value.phase]
            point = by_key.get((run.pk, row.pk))
            # What went with age doesn't come back by the same file.
            if point is None and run.points_thinned:
                summary.unchanged += 1
                continue
            if point is None:
                new.append((row.pk, run.commit.position, run.pk, value))
            elif _values_differ(point, value):
                _set_values(point, value)
                changed.append(point)
            else:
                summary.unchanged += 1
                continue
            summary.series.add(row.pk)
    _copy_points(new)
    Point.objects.bulk_update(changed, ["value", "low", "high", "samples"], batch_size=BATCH)
    summary.points, summary.corrected = len(new), len(changed)
    return summary


def _copy_points(points: Iterable[NewPoint]) -> None:
    """By COPY: of large histories there are millions."""
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(COPY_POINTS) as copy:
        for series, position, run, value in points:
            samples = list(map(float, value.samples))
            copy.write_row((series, position, run, value.value, value.low, value.high, samples, False))


def _set_values(point: Point, value: ImportedValue) -> None:
    point.value, point.low, point.high = value.value, value.low, value.high
    point.samples = list(value.samples)


def _values_differ(point: Point, value: ImportedValue) -> bool:
    """A double comes back from the database as it went in: no tolerance is needed."""
    stored = (point.value, point.low, point.high, tuple(point.samples))
    return stored != (value.value, value.low, value.high, value.samples)


def _renew_latest(project: Project, stored: Sequence[Run], series: set[int]) -> None:
    on_branch = next((run for run in stored if run.commit.branch == project.branch), None)
    if on_branch:
        latest.renew_latest(on_branch, sorted(series))
