"""Foreign runs as rows: one transaction, safe to repeat, no document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone
from paceline.manifest import case_key
from paceline.metrics import HEADLINE_LIMIT

from dashboard.imports import commits
from dashboard.imports.readings import Measured, Value, shortened
from dashboard.imports.readings import Metric as Named
from dashboard.ingest import latest
from dashboard.models import Case, Commit, Metric, Point, Pool, Project, Run, Series
from dashboard.repositories.history import DETACHED

LONGEST_KEY = Case._meta.get_field("key").max_length or 0
LONGEST_METRIC = Metric._meta.get_field("name").max_length or 0
# A foreign benchmark's version is no number: what is imported is all of one version.
VERSION = 1
BATCH = 2000

Show = Callable[[int, int], None]
RunKey = tuple[int, int, int]


@dataclass(slots=True)
class Stored:
    """What an import did. `apart`: commits that the repository doesn't know, which are shown unordered."""

    runs: int = 0
    points: int = 0
    changed: int = 0
    same: int = 0
    commits: int = 0
    apart: int = 0
    series: set[int] = field(default_factory=set)


def bring_in(
    where: Project | str, measured: Sequence[Measured], show: Show | None = None
) -> tuple[Project, Stored]:
    """Store into a project, or into one of this name that is made where there is none: all or nothing."""
    # Before anything is locked: it may take minutes.
    existing = Project.objects.filter(slug=where).first() if isinstance(where, str) else where
    if existing:
        commits.refresh(existing)
    with transaction.atomic():
        project = commits.create_project(where) if isinstance(where, str) else where
        return project, store(project, measured, show)


def store(project: Project, measured: Sequence[Measured], show: Show | None = None) -> Stored:
    """Store what isn't there yet and correct what differs; raises ImportRefused, nothing is stored then.

    `show` gets (runs stored, runs).
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        rows = commits.known(project, measured)
        runs, new = _runs(project, measured, rows, show or (lambda *_: None))
        series = _series(project, measured, runs)
        done = _points(project, measured, runs, series)
        done.runs, done.commits = new, len(rows)
        done.apart = sum(row.branch == DETACHED for row in rows.values())
        if not project.repository:
            commits.place_by_date(project)
        _renew_latest(project, runs, done.series)
    return done


def _runs(
    project: Project, measured: Sequence[Measured], rows: dict[str, Commit], show: Show
) -> tuple[list[Run], int]:
    """The run of each measurement, in their order, and how many of them are new."""
    cases, pools = _cases(project, measured), _pools(measured)
    keys = [(rows[one.commit].pk, cases[one.benchmark, _key(one)].pk, pools[one.pool].pk) for one in measured]
    mine = Run.objects.filter(case__project=project, origin=Run.Origin.IMPORTED).select_related("commit")
    known = {(run.commit_id, run.case_id, run.pool_id): run for run in mine.defer("fingerprint")}
    missing = {key: one for key, one in zip(keys, measured, strict=True) if key not in known}
    by_pk = {row.pk: row for row in rows.values()}
    made = [_run(key, one, by_pk[key[0]]) for key, one in missing.items()]
    for start in range(0, len(made), BATCH):
        Run.objects.bulk_create(made[start : start + BATCH])
        show(start, len(made))
    known |= dict(zip(missing, made, strict=True))
    return [known[key] for key in keys], len(made)


def _run(key: RunKey, one: Measured, commit: Commit) -> Run:
    when = one.measured_at or one.date
    return Run(
        commit=commit,
        case_id=key[1],
        pool_id=key[2],
        origin=Run.Origin.IMPORTED,
        version=VERSION,
        repetitions=max((len(value.samples) for value in one.values), default=0) or 1,
        time_limit=0,
        state=Run.State.DONE,
        progress=1,
        fingerprint=dict(one.fingerprint),
        requested_at=when,
        finished_at=when,
        # It is judged with the whole history, not by itself.
        judged_at=timezone.now(),
    )


def _key(one: Measured) -> str:
    return shortened(case_key(one.params), LONGEST_KEY)


def _cases(project: Project, measured: Iterable[Measured]) -> dict[tuple[str, str], Case]:
    wanted = {(one.benchmark, _key(one)): one for one in measured}
    rows = [
        Case(project=project, benchmark=benchmark, params=dict(one.params), key=key)
        for (benchmark, key), one in wanted.items()
    ]
    Case.objects.bulk_create(rows, ignore_conflicts=True)
    return {(row.benchmark, row.key): row for row in project.cases.all()}


def _pools(measured: Iterable[Measured]) -> dict[str, Pool]:
    names = {one.pool for one in measured}
    Pool.objects.bulk_create([Pool(name=name) for name in sorted(names)], ignore_conflicts=True)
    return {row.name: row for row in Pool.objects.filter(name__in=names)}


def _metrics(values: Iterable[Value]) -> dict[Named, Metric]:
    """The rows of foreign metrics; one whose name has another unit elsewhere bears its own in its name."""
    found = {}
    for named in dict.fromkeys(value.metric for value in values):
        row = _metric(named, named.name)
        if (row.unit, row.kind) != (named.unit, named.kind):
            row = _metric(named, shortened(f"{named.name} ({named.unit}, {named.kind})", LONGEST_METRIC))
        found[named] = row
    return found


def _metric(named: Named, name: str) -> Metric:
    facts = {"unit": named.unit, "kind": named.kind}
    return Metric.objects.get_or_create(name=name, better=named.better, defaults=facts)[0]


def _series(
    project: Project, measured: Sequence[Measured], runs: Sequence[Run]
) -> dict[tuple[int, int, Named], Series]:
    """The series of each (case, pool, metric); the first six of a case may raise a suspicion."""
    metrics = _metrics(value for one in measured for value in one.values)
    mine = Series.objects.filter(case__project=project, version=VERSION, phase="", quick=False)
    known = {(row.case_id, row.pool_id, row.metric_id): row for row in mine}
    headlines: dict[tuple[int, int], int] = {}
    for row in known.values():
        headlines[row.case_id, row.pool_id] = headlines.get((row.case_id, row.pool_id), 0) + row.headline
    wanted = {
        (run.case_id, run.pool_id, value.metric): None
        for run, one in zip(runs, measured, strict=True)
        for value in one.values
    }
    missing = []
    for case, pool, named in wanted:
        if (case, pool, metrics[named].pk) in known:
            continue
        count = headlines.get((case, pool), 0)
        headlines[case, pool] = count + 1
        missing.append(
            Series(
                case_id=case,
                pool_id=pool,
                version=VERSION,
                metric=metrics[named],
                headline=count < HEADLINE_LIMIT,
            )
        )
    made = Series.objects.bulk_create(missing, batch_size=BATCH)
    known |= {(row.case_id, row.pool_id, row.metric_id): row for row in made}
    return {(case, pool, named): known[case, pool, metrics[named].pk] for case, pool, named in wanted}


def _points(
    project: Project,
    measured: Sequence[Measured],
    runs: Sequence[Run],
    series: dict[tuple[int, int, Named], Series],
) -> Stored:
    mine = Point.objects.filter(run__case__project=project, run__origin=Run.Origin.IMPORTED)
    known = {(point.run_id, point.series_id): point for point in mine}
    done = Stored()
    new: list[Point] = []
    changed: list[Point] = []
    for run, one in zip(runs, measured, strict=True):
        for value in one.values:
            row = series[run.case_id, run.pool_id, value.metric]
            point = known.get((run.pk, row.pk))
            if point is None:
                new.append(_point(row, run, value))
            elif _differs(point, value):
                _correct(point, value)
                changed.append(point)
            else:
                done.same += 1
                continue
            done.series.add(row.pk)
    Point.objects.bulk_create(new, batch_size=BATCH)
    Point.objects.bulk_update(changed, ["value", "low", "high", "samples"], batch_size=BATCH)
    done.points, done.changed = len(new), len(changed)
    return done


def _point(series: Series, run: Run, value: Value) -> Point:
    point = Point(series=series, run=run, position=run.commit.position)
    _correct(point, value)
    return point


def _correct(point: Point, value: Value) -> None:
    point.value, point.low, point.high = value.value, value.low, value.high
    point.samples = list(value.samples)


def _differs(point: Point, value: Value) -> bool:
    """A double comes back from the database as it went in: no tolerance is needed."""
    kept = (point.value, point.low, point.high, tuple(point.samples))
    return kept != (value.value, value.low, value.high, value.samples)


def _renew_latest(project: Project, runs: Sequence[Run], series: set[int]) -> None:
    on_branch = next((run for run in runs if run.commit.branch == project.branch), None)
    if on_branch:
        latest.renew_latest(on_branch, sorted(series))
