"""A history as the site would hold it: projects, commits, runs with documents, series and changes."""

from __future__ import annotations

import hashlib
import random
from datetime import timedelta
from typing import Any

from django.utils import timezone

from dashboard.models import (
    Case,
    Change,
    Channel,
    Commit,
    Delivery,
    Document,
    Limit,
    Machine,
    Metric,
    Point,
    Pool,
    Project,
    Regression,
    Run,
    RunLog,
    Series,
    SeriesLatest,
    Telemetry,
)
from tests.pages.documents import document_of

SUBJECTS = (
    "Draw transitions from one array",
    "Rename the agent's buffers",
    "Stack frames once per episode",
    "Add a test for the terminal mask",
    "Keep rewards as float32",
    "Log the loss every hundred steps",
    "Move the target update out of the loop",
    "Split the environment from its renderer",
)


def project(slug: str = "snake", **fields: Any) -> Project:
    return Project.objects.create(slug=slug, repository=f"/srv/git/{slug}.git", **fields)


def commits(of: Project, count: int, subject: str = "") -> list[Commit]:
    start = timezone.now() - timedelta(hours=6 * count)
    hashes = [hashlib.sha256(f"{of.slug} {place}".encode()).hexdigest()[:40] for place in range(count)]
    return Commit.objects.bulk_create(
        Commit(
            project=of,
            hash=hashes[place],
            parents=hashes[place - 1 : place],
            branch=of.branch,
            position=place,
            subject=subject or SUBJECTS[place % len(SUBJECTS)],
            author=("Ada", "Grace", "Barbara")[place % 3],
            committed_at=start + timedelta(hours=6 * place),
        )
        for place in range(count)
    )


def case(of: Project, benchmark: str = "snake_dqn", **params: Any) -> Case:
    key = ",".join(f"{name}={value}" for name, value in sorted(params.items()))
    return Case.objects.create(project=of, benchmark=benchmark, params=params, key=key)


def pool(name: str = "default") -> Pool:
    return Pool.objects.get_or_create(name=name)[0]


def machine(name: str = "bench-1", seen: timedelta = timedelta(0)) -> Machine:
    found, _ = Machine.objects.get_or_create(name=name, defaults={"pool": pool()})
    found.seen_at = timezone.now() - seen
    found.save()
    return found


def run(commit: Commit, of: Case, state: str = Run.State.DONE, **fields: Any) -> Run:
    """A run in this state; one that is done has neither document nor points until `measured` gives them."""
    began = fields.pop("requested_at", commit.committed_at)
    ended = began + timedelta(seconds=74)
    times: dict[str, Any] = {"requested_at": began}
    if state != Run.State.REQUESTED:
        times |= {"claimed_at": began + timedelta(seconds=2), "machine": machine(), "attempt": 1}
    if state in Run.TERMINAL:
        times |= {"finished_at": ended, "judged_at": ended}
    defaults = {"pool": pool(), "version": 1, "repetitions": 5, "time_limit": 600, "state": state}
    return Run.objects.create(commit=commit, case=of, **(defaults | times | fields))


def measured(
    commit: Commit,
    of: Case,
    step_time: float,
    seed: int = 0,
    body: dict[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A run that is done, with its document, its telemetry, its log and its points."""
    found = run(commit, of, **fields)
    body = body or document_of(of, step_time, random.Random(seed))  # noqa: S311
    Document.objects.create(run=found, format=body["format"], body=body, sha256="0" * 64)
    RunLog.objects.create(
        run=found, text="warm-up done\nrepetition 1 of 5\nrepetition 5 of 5\ndocument written\n"
    )
    Telemetry.objects.bulk_create(Telemetry(run=found, **row) for row in body["telemetry"])
    points(found, body["metrics"])
    return found


def points(of: Run, metrics: list[dict[str, Any]]) -> None:
    """A point in the series of each metric, and the latest state of each of them."""
    known = {
        (series.metric.name, series.phase): series
        for series in Series.objects.filter(case=of.case).select_related("metric")
    }
    latest = {state.pk: state for state in SeriesLatest.objects.filter(series__case=of.case)}
    made, states = [], []
    for metric in metrics:
        series = known.get((metric["name"], metric["phase"] or "")) or series_of(of.case, metric)
        values = {name: metric[name] for name in ("value", "low", "high", "samples")}
        made.append(Point(series=series, position=of.commit.position, run=of, tainted=of.tainted, **values))
        state = latest.get(series.pk) or SeriesLatest(series=series)
        state.run, state.position, state.value, state.updated_at = (
            of,
            of.commit.position,
            metric["value"],
            of.requested_at,
        )
        state.recent = [*state.recent, metric["value"]][-30:]
        states.append(state)
    Point.objects.bulk_create(made)
    SeriesLatest.objects.bulk_create(
        states, update_conflicts=True, unique_fields=["series"],
        update_fields=["run", "position", "value", "recent", "updated_at"],
    )  # fmt: skip


def series_of(of: Case, metric: dict[str, Any]) -> Series:
    fields = {name: metric[name] for name in ("name", "unit", "better", "kind")}
    row, _ = Metric.objects.get_or_create(**fields)
    return Series.objects.create(
        case=of, version=1, pool=pool(), metric=row, phase=metric["phase"] or "",
        headline=metric["headline"], exact=metric["exact"],
    )  # fmt: skip


def headline(of: Case, name: str = "step_time") -> Series:
    return Series.objects.get(case=of, metric__name=name, phase="")


def change(series: Series, last_good: Commit, first_bad: Commit, ratio: float, **fields: Any) -> Change:
    before = Point.objects.filter(series=series, run__commit=last_good).values_list("value", flat=True)[0]
    worse = (ratio > 1) == (series.metric.better == "lower")
    direction = Change.Direction.REGRESSION if worse else Change.Direction.IMPROVEMENT
    return Change.objects.create(
        series=series, first_bad=first_bad, last_good=last_good, position=first_bad.position,
        direction=direction, before=before, after=before * ratio, ratio=ratio, low=ratio - 0.03,
        high=ratio + 0.03, confidence=0.998, **fields,
    )  # fmt: skip


def regression(
    series: Series, last_good: Commit, first_bad: Commit, ratio: float = 1.38, **fields: Any
) -> Regression:
    """With its change, and what the profiles and the phases say."""
    moved = change(series, last_good, first_bad, ratio)
    copied = {name: getattr(moved, name) for name in ("before", "after", "ratio", "low", "high")}
    said = {"phase": "learn/push", "phase_share": 0.92, "place": Regression.HOST_ALONE}
    said |= {"suspects": [SUSPECT], "operations": [OPERATION]} | fields
    found = Regression.objects.create(
        project=first_bad.project, first_bad=first_bad, last_good=last_good, series=series, **copied, **said
    )
    Change.objects.filter(pk=moved.pk).update(regression=found)
    return found


SUSPECT = {
    "function": "push", "file": "trainers/snake_dqn/replay.py", "line": 31, "phase": "learn/push",
    "calls_before": 1, "calls_after": 256, "self_before": 2.1e-5, "self_after": 3.9e-4, "changed": True,
}  # fmt: skip


OPERATION = {
    "operation": "aten::stack", "phase": "learn/push", "count_before": 1, "count_after": 256,
    "seconds_before": 1.1e-5, "seconds_after": 2.3e-4, "share": 0.61,
}  # fmt: skip


def limit(series: Series, run: Run, maximum: float, **fields: Any) -> Limit:
    """How a run stood to an upper bound on a series that it has a point in."""
    value = Point.objects.get(series=series, run=run).value
    said = {"maximum": maximum, "value": value, "crossed": value > maximum} | fields
    found = Limit.objects.create(series=series, run=run, position=run.commit.position, **said)
    SeriesLatest.objects.filter(series=series, run=run).update(limit=found)
    return found


def delivery(of: Regression, state: str = Delivery.State.DELIVERED, **channel: Any) -> Delivery:
    defaults = {"kind": Channel.Kind.EMAIL, "address": "team@example.org"}
    to, _ = Channel.objects.get_or_create(project=of.project, **(defaults | channel))
    failed = state != Delivery.State.DELIVERED
    return Delivery.objects.create(
        regression=of, channel=to, event="opened", state=state, attempts=3 if failed else 1,
        errors=["The receiver answered 503.", "The receiver did not answer in 10 s."] if failed else [],
        next_attempt_at=timezone.now(), delivered_at=None if failed else timezone.now(),
    )  # fmt: skip


def history(slug: str = "snake", count: int = 3, step_at: int | None = None, cases: int = 1) -> Project:
    """A project whose every case was measured at each of `count` commits; slower from `step_at` on."""
    found = project(slug)
    noise = random.Random(len(slug) + count)  # noqa: S311
    line = commits(found, count)
    for number in range(cases):
        of = case(found, variant=("optimized", "baseline", *(f"v{n}" for n in range(cases)))[number])
        for commit in line:
            slow = 1.38 if step_at is not None and commit.position >= step_at else 1.0
            base = 0.00105 * (1 + 1.4 * number) * slow * noise.gauss(1, 0.008)
            measured(commit, of, base, seed=commit.position, tainted=commit.position % 17 == 13)
    return found
