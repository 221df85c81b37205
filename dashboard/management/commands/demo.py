from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard import hosts, runs, services, triggers
from dashboard.management import demonstration
from dashboard.management.base import SiteCommand
from dashboard.management.commands.trigger import summarize_progress
from dashboard.management.demonstration import BuiltHistory, DemonstrationError
from dashboard.management.demonstration_table import format_table
from dashboard.models import Experiment, Project, Regression, Run
from dashboard.projects.registration import NewProject, add_project
from dashboard.projects.repository_location import ProjectError
from dashboard.triggers import TriggerError

LOOK_SECONDS = 0.5
MOST_SEED = 2**32 - 1
HISTORIES = ("planted", "larger", "same", "toggles")
KINDS = ("single", "distributed")
FEWEST_COMMITS, MOST_COMMITS = 12, 500
# Of the machine's time while runs wait: a first regression is proved long before the last commit is measured.
PROOFS_SHARE = 0.5
# A run that is stored is judged within seconds; the sweep sends what was lost on the way again.
JUDGEMENT_SECONDS = 180.0
# Each takes a minute or two, a few of them in turn; on a busy machine several times as long.
PROOF_SECONDS = 3600.0


class Command(SiteCommand):
    help = (
        "See on real code what Paceline finds: build a git repository of real training code with planted "
        "changes of speed and memory, add it as a new project, measure every second of its 29 commits, "
        "prove and bisect what that makes suspect, and print what was planted beside what was found. With "
        "--wait it takes about ten minutes on two cores. "
        "Example: manage.py demo --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--wait",
            action="store_true",
            help="wait until all is measured and judged, with services started for as long as that takes "
            "where none run; the exit status is 1 if a run failed",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, not a table")
        parser.add_argument(
            "--kind",
            metavar="NAME",
            default=KINDS[0],
            help="single (the default): a training of one process, with the histories below; distributed: "
            "trainings with two ranks, with DataLoader workers and with a compiler, whose history holds a "
            "slow rank, a slow worker, a graph break, an item() in the loop, a forgotten no_grad, fragmented "
            "memory and a bug of learning",
        )
        parser.add_argument(
            "--history",
            metavar="NAME",
            default=HISTORIES[0],
            help="planted (the default); larger: two culprits in one range, a commit that doesn't run, a "
            "merge, a regression that is repaired, a package's new version, a benchmark defined anew; "
            "same: nothing changes but comments, so no alert may go out; toggles: a standard benchmark whose "
            "optimizations are switched off and on again, one after the other",
        )
        parser.add_argument(
            "--benchmark", metavar="NAME", help="of the history toggles: whose (default: snake_dqn)"
        )
        parser.add_argument(
            "--toggle",
            metavar="NAME",
            action="append",
            default=[],
            help="of the history toggles: only this one; repeatable",
        )
        parser.add_argument("--commits", metavar="N", default="30", help="of the history same (default: 30)")
        parser.add_argument(
            "--plant", action="store_true", help="plant one commit that is 10 %% slower in the history same"
        )
        parser.add_argument(
            "--seed", metavar="N", help="draws what is planted, where and how large (default: random)"
        )

    def perform(self, **options: Any) -> None:
        seed = parse_seed(options["seed"])
        arguments = parse_history(options)
        with services.running_services(settings, hosts.local_join_code) if options["wait"] else nullcontext():
            project, built, ids = set_up_history(seed, arguments)
            if options["wait"]:
                wait_until_proved(project, ids)
            result = demonstration.report_findings(project, built)
        self.print(result, options["json"], options["wait"])
        asked = [run for run in result["runs"] if run["id"] in ids]
        bad = [run for run in asked if run["state"] in (Run.State.FAILED, Run.State.CANCELLED)]
        if bad:
            raise CommandError(
                f"{len(bad)} of {len(ids)} runs failed or were cancelled; the first: {bad[0]['reason']}"
            )

    def print(self, result: dict[str, Any], as_json: bool, waited: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(result, indent=2))
            return
        self.stdout.write(f"Project {result['project']}: {result['address']}")
        if not waited:
            self.stdout.write(f"{len(result['runs'])} runs are requested; the page shows what they find.")
            return
        self.stdout.write("\n".join(format_table(result)))


def set_up_history(seed: int, arguments: Sequence[str]) -> tuple[Project, BuiltHistory, list[int]]:
    """Build the repository, register it and request what is to be measured, the oldest first."""
    slug = demonstration.free_slug(seed)
    folder = demonstration.repository_folder(slug)
    with ProgressBar() as bar:
        bar.show(0, "Building a repository of training code")
        try:
            built = demonstration.build_history(folder, seed, bar.show, arguments)
            project = add_project(
                NewProject(slug, str(built.repository), numbers={"experiment-share": PROOFS_SHARE})
            )
            ids = [
                run
                for commit in built.measured
                for run in request_commit(project, commit, built.benchmarks.get(commit, ()))
            ]
        except (DemonstrationError, ProjectError, TriggerError) as error:
            raise CommandError(str(error)) from error
        bar.show(1, f"Project {slug}: {len(ids)} runs requested")
    return project, built, ids


def request_commit(project: Project, commit: str, benchmarks: Sequence[str]) -> list[int]:
    """The ids of one commit's new runs, of these benchmarks or of all."""
    return triggers.create_command_trigger(project, triggers.parse_revisions(commit=commit), benchmarks)[1]


def parse_seed(text: str | None) -> int:
    if text is None:
        return secrets.randbelow(1_000_000)
    if not (text.isascii() and text.isdigit() and int(text) <= MOST_SEED):
        raise CommandError(f"--seed is {text!r}, must be a whole number from 0 to {MOST_SEED}.")
    return int(text)


def parse_history(options: dict[str, Any]) -> list[str]:
    """The builder's arguments; CommandError where options don't go together."""
    name, commits, kind = options["history"], options["commits"], options["kind"]
    if kind not in KINDS:
        raise CommandError(f"--kind is {kind!r}, must be one of {', '.join(KINDS)}.")
    if kind != KINDS[0] and name != HISTORIES[0]:
        raise CommandError("--history belongs to --kind single.")
    if name not in HISTORIES:
        raise CommandError(f"--history is {name!r}, must be one of {', '.join(HISTORIES)}.")
    if name != "same" and (options["plant"] or commits != "30"):
        raise CommandError("--commits and --plant belong to --history same.")
    if name != "toggles" and (options["benchmark"] or options["toggle"]):
        raise CommandError("--benchmark and --toggle belong to --history toggles.")
    if not (commits.isascii() and commits.isdigit() and FEWEST_COMMITS <= int(commits) <= MOST_COMMITS):
        raise CommandError(
            f"--commits is {commits!r}, must be a whole number from {FEWEST_COMMITS} to {MOST_COMMITS}."
        )
    if kind != KINDS[0]:
        return [f"--history={kind}"]
    plant = ["--plant"] if options["plant"] else []
    whose = [f"--benchmark={options['benchmark']}"] if options["benchmark"] else []
    only = [f"--toggle={toggle}" for toggle in options["toggle"]]
    return [f"--history={name}", f"--commits={commits}", *plant, *whose, *only]


def wait_until_proved(project: Project, ids: list[int]) -> None:
    """Until every run has ended, also what was disturbed and is measured again; every stored one is judged,
    and every suspicion is decided."""
    try:
        with ProgressBar() as bar:
            left = ids
            while left:
                wait_for_runs(left, bar)
                wait_for_judgement(left, bar)
                left = runs.hasten_remeasuring(project)
            wait_for_proofs(project, bar)
    except KeyboardInterrupt:
        raise CommandError(
            f"Interrupted: project {project} stays, and its runs go on once the services run again."
        ) from None


def wait_for_runs(ids: list[int], bar: ProgressBar) -> None:
    start = time.monotonic()
    while True:
        runs = list(
            Run.objects.filter(pk__in=ids).select_related("configuration__case", "commit").order_by("pk")
        )
        fraction, text = summarize_progress(runs)
        bar.show(fraction, f"{text}; {estimate_time(fraction, time.monotonic() - start)}")
        if all(run.state in Run.TERMINAL for run in runs):
            return
        time.sleep(LOOK_SECONDS)


def wait_for_judgement(ids: list[int], bar: ProgressBar) -> None:
    deadline = time.monotonic() + JUDGEMENT_SECONDS
    while True:
        left = Run.objects.filter(pk__in=ids, state=Run.State.DONE, judged_at=None).count()
        bar.show(1, f"{left} runs are still to be judged" if left else "all runs are measured and judged")
        if not left:
            return
        if time.monotonic() > deadline:
            raise CommandError(
                f"{left} runs are measured but weren't judged: look into the service worker's log."
            )
        time.sleep(LOOK_SECONDS)


def wait_for_proofs(project: Project, bar: ProgressBar) -> None:
    """Until no regression of the project waits for interleaved runs any more."""
    deadline = time.monotonic() + PROOF_SECONDS
    while True:
        waiting = Regression.objects.filter(project=project, proving=True, withdrawn_at=None)
        asked = Experiment.objects.filter(regression_link__regression__in=waiting)
        active = asked.filter(state__in=Experiment.ACTIVE).first()
        if not waiting.exists():
            bar.show(1, "every suspicion is decided")
            return
        what = f"{active}: {active.activity or active.state}" if active else "measuring what explains them"
        bar.show(1, f"{waiting.count()} regressions are still to be proved; {what}")
        if time.monotonic() > deadline:
            raise CommandError(
                f"{waiting.count()} regressions weren't proved in time: look into the queue page, and the "
                "worker's log."
            )
        time.sleep(LOOK_SECONDS)


def estimate_time(fraction: float, seconds: float) -> str:
    """How long it has taken, and how much longer it will at this pace."""
    spent = f"{format_minutes(seconds)} gone"
    if fraction < 0.02:
        return spent
    return f"{spent}, about {format_minutes(seconds * (1 - fraction) / fraction)} left"


def format_minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
