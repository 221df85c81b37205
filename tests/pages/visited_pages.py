"""Pages with all that they can show, made and named: what their templates are tried on."""

from __future__ import annotations

import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from dashboard import dispatch, failed_jobs, runs
from dashboard.access import Visitor, make_token
from dashboard.alerts.kinds.email import compose_email
from dashboard.ingest.latest import write_latest
from dashboard.models import (
    Case,
    Change,
    Check,
    Commit,
    Delivery,
    Document,
    Experiment,
    ExperimentPair,
    Heartbeat,
    Limit,
    Machine,
    Metric,
    PostedDocument,
    Project,
    Regression,
    Run,
    RunLog,
    Sentinel,
    Series,
    SeriesLatest,
    Telemetry,
    Trigger,
)
from dashboard.querysets.experiments import STATES
from tests.dashboard import factories
from tests.dashboard.conftest import Repository
from tests.pages import builders
from tests.pages.case_builders import create_cases
from tests.pages.check_builders import create_check, create_pull_request, grow_memory, measure_case
from tests.pages.documents import complete_document, metric_row
from tests.pages.experiment_builders import MANIFEST, create_ended, create_experiment, get_configuration
from tests.pages.regressions.test_causes import MOVED
from tests.pages.runs.test_costs import give_costs
from tests.pages.runs.test_document_parts import STACKS
from tests.pages.test_disturbances import disturb_most
from tests.pages.test_noise import measure_noisy_project, renew_latest

EXCERPT = {
    "file": builders.SUSPECT["file"],
    "function": builders.SUSPECT["function"],
    "lines": [{"sign": "+", "old": None, "new": 2, "text": "keep(one)"}],
    "left_out": 3,
}
GPU_HOST = {
    "cpu_model": "AMD EPYC 9654",
    "cpu_count": 96,
    "memory_bytes": 8.1e11,
    "gpus": [{"name": "NVIDIA H100", "memory_bytes": 85_520_809_984}] * 8,
    "driver": "570.86",
    "os": "Debian 12",
    "kernel": "6.1",
}


def commit_pages() -> list[str]:
    """Of commits that checks have measured from."""
    checked = Check.objects.select_related("project", "base_commit").exclude(base_commit=None)
    found = {f"/projects/{check.project.slug}/commits/{check.base_commit.hash}" for check in checked}
    return [f"{where}/" for where in sorted(found)]


def grid_pages() -> list[str]:
    """Of a project with many cases, most of whose commits have no result."""
    project = create_cases(30, "cases")
    base = project.commits.earliest("position")
    Run.objects.filter(commit__project=project).update(
        claimed_at=timezone.now() - timedelta(minutes=5), finished_at=timezone.now()
    )
    lists = ("?q=batch", f"?base={base.hash}", "heatmap/", f"heatmap/?base={base.hash}", "noise/", "commits/")
    renew_latest(measure_noisy_project("noisy"))
    return [f"/projects/cases/{name}" for name in lists] + [
        "/projects/noisy/?metric=step_time",
        f"/machines/{Machine.objects.get(name='busy').pk}/",
        "/projects/noisy/noise/?metric=step_time",
        # Of which no case has a value.
        "/projects/noisy/noise/?metric=device_memory",
        "/projects/noisy/heatmap/?metric=device_memory",
        "/projects/noisy/trust/",
    ]


def copy_pages() -> list[str]:
    """Of a copy whose repository nobody has read here yet, with one measured commit, whose cases share no
    metric."""
    project = builders.create_project("copied", imported_at=timezone.now(), repository_problem="It is away.")
    (commit,) = builders.create_commits(project, 1)
    for number, metric in enumerate(("throughput", "step_time", "peak_memory", "memory_growth")):
        run = builders.create_measured_run(commit, builders.create_case(project, f"case{number}"), 0.001)
        Series.objects.filter(configuration__case=run.case).exclude(metric__name=metric).delete()
    pages = [f"/projects/copied/{name}" for name in ("", "compare/", "trust/?days=30")]
    Run.objects.filter(project=project).update(finished_at=timezone.now() - timedelta(days=40))
    return pages


def run_pages() -> list[str]:
    """Runs in all states, with documents that hold everything."""
    project = builders.create_project("runs")
    line = builders.create_commits(project, 3)
    case = builders.create_case(project, "snake_dqn", variant="optimized")
    body = complete_document()
    row = {"kind": "kernel", "name": "ncclDevKernel_AllReduce", "operation": "", "phase": "learn"}
    body["device_profile"]["rows"].append({**row, "count": 1.0, "seconds": 1e-4})
    body["profile"]["stacks"] = STACKS
    body["phases"][0]["device_total"] = 7e-5
    body["phases"].append({**body["phases"][0], "path": "prefetch", "thread": "loader-1"})
    body["warnings"] = [{"code": "hot", "message": "it is hot", "advice": "cool it", "taints": True}]
    body["environment"]["gpus"] = [{"name": "H200", "memory_bytes": 141e9}]
    person = User.objects.create_user("barbara")
    trigger = Trigger.objects.create(
        project=project,
        source="web",
        benchmarks=["snake_dqn"],
        requested_by=person,
        state="resolved",
        left_out=[{"reason": "newest first", "commits": 3, "benchmark": ""}],
    )
    Commit.objects.filter(pk=line[0].pk).update(tags=["v1.2"], parents=["0" * 40])
    measured = []
    for commit in line:
        measured.append(builders.create_measured_run(commit, case, 0.001, body=body, trigger=trigger))
        for metric in body["metrics"]:
            metric["value"] += metric["kind"] == "counter"
    plain = builders.create_measured_run(line[2], builders.create_case(project, "walker"), 0.001)
    plain.document.body["metrics"] = [row for row in plain.document.body["metrics"] if not row["phase"]]
    plain.document.body["ranks"] = copy.deepcopy(body["ranks"])
    plain.document.body["warnings"] = [{**body["warnings"][0], "taints": False}]
    for rank in plain.document.body["ranks"]["rows"]:
        rank |= {"waits": None, "late": None, "device_memory": 2e9}
    plain.document.save()
    builders.create_limit(builders.headline_series(plain.case), plain, maximum=0.0001)
    failed = [
        builders.create_run(line[0], case, Run.State.FAILED, failure=failure, reason="It ended.", quick=True)
        for failure in Run.Failure.values
    ]
    cancelled = builders.create_run(line[1], case, Run.State.CANCELLED, quick=True)
    waiting = builders.create_run(
        line[1], case, Run.State.REQUESTED, quick=True, attempt=1, not_before=timezone.now()
    )
    active = builders.create_run(line[2], case, Run.State.MEASURING, quick=True)
    imported = builders.create_run(line[0], case, origin="imported", version=2)
    builders.create_points(imported, body["metrics"][:2])
    old = builders.create_measured_run(line[0], builders.create_case(project, "old"), 0.001)
    old.document.delete()
    posted = builders.create_run(line[0], case, origin="posted", version=3)
    token = make_token(Visitor(person), project, "ci", ["view"])[0]
    give_costs(measured[0])
    Run.objects.filter(pk=measured[0].pk).update(counted_at=line[1].hash)
    PostedDocument.objects.create(
        run=posted, machine="ci", measured_at=timezone.now(), posted_by=person, token=token
    )
    RunLog.objects.create(run=active, text="step 100")
    triggers = create_triggers(active, measured[0])
    read = Series.objects.get(configuration=measured[0].configuration, metric__name="step_time", phase="")
    moved = {"code": "moved", "from": ["env"], "to": ["rollout/env"], "share": 0.042}
    builders.create_change(read, line[1], line[2], 1.0, doubts=[moved])
    Change.objects.filter(series=read, first_bad=line[2]).update(direction="moved")
    runs = [*measured, plain, *failed, cancelled, waiting, active, imported, posted, old]
    last = measured[-1].pk
    return [
        *("/projects/runs/costs/", "/projects/runs/commits/"),
        *(f"/projects/runs/triggers/{asked}/" for asked in (trigger.pk, *triggers)),
        *(f"/projects/runs/commits/{commit.hash}/" for commit in line),
        *("/projects/runs/commits/?q=nothing", "/projects/runs/runs/?state=failed"),
        "/projects/runs/runs/?state=remeasuring",
        "/projects/runs/runs/?state=requested",
        *(f"/projects/runs/runs/?{query}" for query in ("case=nothing", "commit=0")),
        *(f"/runs/{run.pk}/" for run in runs),
        *(f"/runs/{run.pk}/status/" for run in (waiting, active)),
        # Read against commits that are there, measured or not, and against one that isn't.
        *(f"{read.get_absolute_url()}?against={name}" for name in ("v1.2", imported.commit.hash, "v9")),
        f"/runs/{last}/?repetition=77",
        f"/runs/{last}/?frame=2&width=calls",
        f"/runs/{last}/frames/?frame=2",
    ]


def create_triggers(active: Run, ended: Run) -> list[int]:
    """One whose only run goes on, one that asked for nothing new, and one that was refused."""
    kept = {"project": active.case.project, "source": "web"}
    only = Trigger.objects.create(**kept, state="resolved", detail="1 run at 1 commit.")
    Run.objects.filter(pk=active.pk).update(trigger=only)
    commit = {"commit": ended.commit.hash}
    idle = Trigger.objects.create(**kept, state="resolved", detail="Nothing to do.", revisions=commit)
    refused = Trigger.objects.create(**kept, state="refused", detail="No such commit.", revisions=commit)
    return [only.pk, idle.pk, refused.pk]


def regression_pages() -> list[str]:
    """Regressions in all states, proved and not, with all that is known of one."""
    line = builders.create_measured_commits(9, step_at=2)
    series = builders.headline_series(line[0].runs.get().case)
    whole = builders.create_regression(
        series, line[1], line[2], state="confirmed", culprit=line[0], recovered_by=line[7],
        cause="code", cause_evidence=[{"code": "suspect changed", "place": "replay.py:push"}],
        excerpts=[EXCERPT], explained_for="of another range", device=builders.DEVICE,
        slow_processes=[{"code": "rank memory", "ranks": 2, "rank": 1, "more": 1e8}],
        suspects=[builders.SUSPECT | {"cumulative_before": 0.01, "cumulative_after": 0.02}],
    )  # fmt: skip
    Change.objects.filter(regression=whole).update(doubts=[{"code": "near floor"}])
    experiment = factories.create_ended_experiment(
        whole, "confirmed", line[1], line[2], ratio=whole.ratio, low=1.3, high=1.5,
        commands=["git checkout abc"], reason={"code": "withdrawn"},
    )  # fmt: skip
    phases = {"learn": [0.010, 0.0138], **{f"learn/{number}": [0.001, 0.001] for number in range(9)}}
    for index in range(4):
        ExperimentPair.objects.create(
            experiment=experiment, index=index, base_first=True, base=1, head=1.4, seconds=30, phases=phases,
            unreported="head" if index else "", seed=index,
        )  # fmt: skip
    Limit.objects.update(regression=whole)
    builders.create_limit(series, line[8].runs.get(), maximum=0.001, regression=whole)
    for state in Delivery.State.values:
        builders.create_delivery(whole, state, address=f"{state}@example.org")
    compose_email(whole.deliveries.all()[0])
    person = User.objects.create_user("grace")
    whole.triages.create(person=person, action="acknowledge", comment="On it.")
    wide = builders.create_regression(series, line[2], line[5], triaged="intended", triaged_by=person)
    Regression.objects.filter(pk=wide.pk).update(triaged_at=timezone.now())
    moved = builders.create_regression(series, line[5], line[6], cause="machine", cause_evidence=[MOVED])
    gone = {"withdrawn_at": timezone.now(), "state": "confirmed"}
    builders.create_regression(series, line[6], line[7], **gone)
    builders.create_regression(series, line[3], line[4], triaged="not real", triaged_by=person, **gone)
    for commit in line[2:4]:
        metric = metric_row("scaling_exponent_steps", "1", "lower", "time", [1.1])
        builders.create_points(commit.runs.get(), [metric])
    steps = builders.headline_series(series.case, "scaling_exponent_steps")
    builders.create_regression(steps, line[2], line[3])
    steps.points.all().delete()
    bare = builders.create_regression(series, line[7], line[8], state="confirmed")
    line[8].runs.get().document.delete()
    builders.create_delivery(bare, Delivery.State.FAILED, address="lost@example.org")
    for regression in (wide, moved, bare):
        compose_email(builders.create_delivery(regression))
    commits = (f"/projects/snake/commits/{commit.hash}/" for commit in line)
    beside = [f"/runs/{line[at].runs.earliest('pk').pk}/" for at in (2, 4)]
    lists = (*commits, *beside, "/projects/snake/trust/?days=all")
    return [*(regression.get_absolute_url() for regression in Regression.objects.all()), *lists]


def experiment_pages(folder: Path) -> list[str]:
    """Experiments in all states, of two commits and of two cases."""
    repository = Repository(folder / "asked")
    repository.commit("Walk", paceline_toml=MANIFEST)
    project = builders.create_project("asked")
    Project.objects.filter(pk=project.pk).update(repository=repository.folder)
    line = builders.create_commits(project, 3)
    walker = builders.create_case(project, "walker", n=1)
    for commit in line:
        builders.create_measured_run(commit, walker, 0.001)
    reached = {"code": "precision not reached", "reached": 0.03, "wanted": 0.01, "pairs": 6, "seconds": 72}
    profiles = {side: long_profile(calls) for side, calls in (("base", 1), ("head", 2))}
    done = create_ended(line, reason=reached, profiles=profiles, in_turns=True, by_steps=True)
    done.pairs.update(phases={f"learn/{number}": [0.001, 0.002] for number in range(9)}, unreported="base")
    toggled = create_ended([line[0]], head_configuration=get_configuration(line[0], n=2))
    for side in (toggled.base_configuration, toggled.head_configuration):
        builders.create_measured_run(line[0], side.case, 0.01)
    waiting = create_experiment(line, attempt=1)
    crashed = {"code": "side failed", "text": "It crashed."}
    failed = create_experiment(line, state="done", verdict="untestable", reason=crashed, purpose="script")
    empty = create_ended(line, profiles={"base": long_profile(1), "head": long_profile(1)})
    regression = Regression.objects.filter(project__slug="snake").earliest("pk")
    proof = factories.create_ended_experiment(
        regression, "confirmed", regression.last_good, regression.first_bad, purpose="bisection"
    )
    measuring = create_ended(line, state="measuring", verdict="", metric="throughput", activity="pair 7")
    names = (
        "peak_memory",
        "memory_growth",
        "function_calls",
        "tensor_operations",
        "scalar_reads",
        "copied_bytes",
    )
    active = [create_experiment(line, metric=name) for name in names]
    for _ in range(45):
        create_experiment(line, state="cancelled", requested_by=None)
    experiments = [done, toggled, waiting, failed, empty, proof, measuring, *active[:1]]
    return [
        *(f"/experiments/{experiment.pk}/" for experiment in experiments),
        f"/experiments/{measuring.pk}/status/?pairs=1",
        f"/experiments/{waiting.pk}/status/?pairs=0",
        *(
            f"/projects/{name}/experiments/?state={state}"
            for name in ("asked", "snake", "runs")
            for state in STATES
        ),
        *("/", "/queue/", "/projects/asked/", "/projects/asked/costs/"),
    ]


PUSH = {"function": "push", "file": "replay.py", "calls_before": 1, "calls_after": 256, "changed": True}


def check_pages() -> list[str]:
    """Checks in all states, of pull requests and of branches."""
    line = builders.create_commits(builders.create_project("checked"), 2)
    fork = create_pull_request(line, is_fork=True)
    left_out = [{"case": "b", "code": "not touched"}]
    worse = create_check(line, fork, answer="worse", left_out=left_out, approved_by="ada", intended_by="ada")
    measure_case(worse, line, 1.4)
    proof = Experiment.objects.filter(purpose="proof", regression_link__isnull=False).latest("pk")
    reason = {"code": "proved on the branch", "check": worse.pk}
    Experiment.objects.filter(pk=proof.pk).update(pairs_of=worse.cases.get().experiment, reason=reason)
    proof.regression_link.regression.triages.create(
        action="intended", account="Ada (github)", merged_check=worse
    )
    measure_case(worse, [line[0], line[0]], 1)
    waiting = create_check(line, create_pull_request(line, 8), state="waiting")
    measuring = create_check(line, state="measuring")
    measure_case(measuring, line, 1.2, state="measuring", verdict="")
    proved = {"code": "proved", "case": "walker[fast=true]", "metric": "peak_memory"}
    early = create_check(line, state="measuring", answer="worse", reason=proved)
    needs_more = measure_case(early, line, 1.001, state="measuring", verdict="", finished_at=None)
    grow_memory(needs_more, 1.3)
    needs_more.experiment.profiles["suspects"] = {"memory": [PUSH]}
    needs_more.experiment.save()
    for number in range(45):
        create_check(line, create_pull_request(line, 100 + number, url=""), state="cancelled")
    return [
        *(f"/checks/{check.pk}/" for check in (worse, waiting, measuring, early)),
        proof.get_absolute_url(),
        f"/checks/{measuring.pk}/status/",
        f"/checks/{early.pk}/status/?answer=worse",
        *(f"/projects/{slug}/checks/" for slug in ("checked", "runs")),
    ]


def long_profile(calls: int) -> dict[str, Any]:
    function = {
        "file": "replay.py",
        "line": 1,
        "phase": "learn",
        "cumulative": 1,
        "calls": calls,
        "self": calls,
    }
    return {"steps": 1, "functions": [{**function, "function": f"push_{number}"} for number in range(40)]}


def machine_pages() -> list[str]:
    """Machines that measure, with all that their history may have, and one that is retired."""
    busy = Machine.objects.get(name="bench-1")
    Machine.objects.filter(pk=busy.pk).update(
        fingerprint=GPU_HOST, joined_at=timezone.now(), agent_version="0.4", protocol=1
    )
    Run.objects.filter(machine=busy, state="done").update(
        warning_codes=["processor_contention", "too_few_samples"], calibration=0.01, tainted=True
    )
    measuring = Experiment.objects.filter(state="measuring").latest("pk")
    Experiment.objects.filter(pk=measuring.pk).update(machine=busy)
    done = Run.objects.filter(machine=busy, state="done").latest("pk")
    sentinel = Sentinel.objects.create(
        configuration=done.configuration, machine=busy, commit=done.commit, ratio=1.1,
        moved_after=timezone.now(), moved_before=timezone.now(),
    )  # fmt: skip
    metric = Metric.objects.filter(name="step_time").earliest("pk")
    sentinel.points.create(run=done, metric=metric, value=0.001, measured_at=timezone.now())
    retired = builders.create_machine("bench-old", state="retired")
    for number in range(101):
        builders.create_machine(f"gone-{number}", state="retired")
        builders.create_machine(f"new-{number}")
    return [
        *("/machines/", "/machines/?page=2"),
        *(f"/machines/{machine.pk}/" for machine in (busy, retired)),
        f"/machines/{busy.pk}/status/?seen=measuring",
    ]


GRID_PAGES = (
    *("?q=nothing", "?group=benchmark", "heatmap/", "heatmap/?q=nothing"),
    *("noise/", "noise/?q=nothing", "regressions/?since=2020-01-01&proven=yes"),
    *("regressions/?since=2020-01-01", "regressions/?case=nothing"),
)


def site_pages() -> list[str]:
    """The lists, all of more than one page."""
    machine = builders.create_machine("bench-9", seen=timedelta(hours=1))
    commit = Commit.objects.filter(project__slug="snake").latest("position")
    case = commit.runs.earliest("pk").case
    Sentinel.objects.create(
        configuration=commit.runs.earliest("pk").configuration, machine=machine, commit=commit, ratio=1.1,
        moved_after=timezone.now(), moved_before=timezone.now(),
    )  # fmt: skip
    Heartbeat.objects.create(name="scheduler", seen_at=timezone.now() - timedelta(hours=1))
    for version in range(1, 20):
        builders.create_run(commit, case, Run.State.REQUESTED, pool=builders.get_pool("gpu"), version=version)
    for number in range(25):
        builders.create_project(f"project-{number}")
        builders.create_case(commit.project, "walker", n=number)
    builders.create_measured_run(commit, Case.objects.get(key="n=9"), 0.001)
    factories.set_environment(commit.runs.earliest("pk"), {"torch": "3"})
    old = builders.create_measured_run(commit, Case.objects.get(key="n=8"), 0.001)
    Telemetry.objects.filter(run=old).delete()
    Document.objects.filter(run=old).update(telemetry_dropped=True)
    failed_jobs.note_failure(dispatch.JUDGE, (old.pk,), KeyError("x"))
    empty = Series.objects.get(pk=Series.objects.latest("pk").pk)
    empty.points.all().delete()
    watched = Project.objects.get(slug="project-1")
    disturbed = disturb_most(builders.create_commits(watched, 6), builders.create_case(watched))
    runs.remeasure_disturbed(disturbed, ["processor_contention"])
    refused = builders.create_refused_trigger(watched)
    refused.left_out = [{"reason": "manifest", "commits": 1, "benchmark": ""}]
    refused.save()
    lists = ("", "runs/", "commits/", "triggers/", "live-runs/", *GRID_PAGES)
    for project in Project.objects.filter(slug__in=("snake", "runs")):
        write_latest(project, list(Series.objects.values_list("pk", flat=True)))
    SeriesLatest.objects.update(base_value=1.0)
    Project.objects.filter(slug="snake").update(training_hours_per_week=100)
    builders.create_commits(Project.objects.get(slug="project-2"), 2)
    failing = builders.create_commits(builders.create_project("failing"), 1)
    builders.create_run(failing[0], builders.create_case(failing[0].project), Run.State.FAILED)
    series = [row.get_absolute_url() for row in Series.objects.filter(headline=True)]
    return [
        *("/", "/?page=2", "/work/?seen=3", "/deliveries/", "/projects/runs/", "/projects/project-1/"),
        "/projects/failing/",
        *(f"/projects/snake/{part}?base={commit.hash}" for part in ("", "heatmap/")),
        *(
            "/projects/project-2/commits/",
            "/projects/project-1/commits/",
            "/projects/project-2/claims/",
            "/queue/",
            "/search/",
            "/search/?q=sna",
            "/search/?q=walke",
            "/search/?q=nothing at all",
        ),
        *("/regressions/?state=all&project=snake", "/regressions/?project=runs"),
        *(f"/projects/snake/{name}" for name in lists),
        *(f"/regressions/?state={state}" for state in ("open", "withdrawn", "recovered", "intended")),
        *series,
        *(run.get_absolute_url() for run in (disturbed, old)),
        empty.get_absolute_url(),
        f"{series[0]}?show=2&until=4",
    ]


def series_pages() -> list[str]:
    """One series with all that can be chosen of it, and with runs that left no value."""
    series = Series.objects.filter(
        configuration__case__project__slug="snake", metric__name="step_time", points__position=5
    ).first()
    assert series is not None
    newest = series.points.latest("position")
    builders.create_run(newest.run.commit, series.case, "failed", failure="crash", reason="It ended with 1.")
    Run.objects.filter(pk=newest.run_id).update(warning_codes=["calibration_drift"])
    series.points.filter(pk=newest.pk).update(tainted=True)
    factories.create_commit(series.case.project, 20, "feature")
    Commit.objects.filter(branch="feature").update(fork=1)
    where = series.get_absolute_url()
    beside = f"relative=first&beside=@{series.case.project.branch}&zoom=1-4"
    return [f"{where}?{query}" for query in (beside, "view=phases", "zoom=800-900")]
