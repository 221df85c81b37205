from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from dataclasses import fields
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db.models import Count, Q
from paceline.progress_bar import ProgressBar

from dashboard import experiments, hosts, services
from dashboard.access import command_account
from dashboard.experiments import EstimateRequest, ExperimentError
from dashboard.experiments.paired_phases import paired_phases
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Experiment
from dashboard.sentences.comparisons import experiments as sentences
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import upper_first

POLL_SECONDS = 0.5
# How the command calls what EstimateRequest has.
ARGUMENTS = {"base": "A", "head": "B", "project": "PROJECT"}


class Command(SiteCommand):
    help = (
        "Measure how much faster or slower one commit is than another. Both are run in turn, pair by pair, "
        "on one machine, until the difference is known to the wanted precision or the minutes are spent; "
        "the answer is the difference with its interval, and “no difference larger than 1.2 %” is one. "
        "Commits that were never measured can be asked about. "
        "Examples: manage.py experiment my-training v1.4 main --wait; "
        "manage.py experiment my-training main --case train --toggle compile=true --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's name")
        parser.add_argument(
            "base",
            metavar="A",
            help="the commit to compare with: a hash, a tag or a branch; or a baseline of B: rolling (the "
            "commit measured before it), merge-base, pinned (by the project's policy)",
        )
        parser.add_argument(
            "head", metavar="B", nargs="?", default="", help="the commit in question; not with --toggle"
        )
        parser.add_argument(
            "--toggle",
            default="",
            metavar="NAME[=VALUE]",
            help="compare two cases at commit A: the one of --case, and the same with this parameter "
            "changed. Without a value a boolean is switched, and others take the only other value that the "
            "manifest's cases, or the claims beside the script, have. Several are parted by commas",
        )
        parser.add_argument(
            "--case",
            default="",
            metavar="CASE",
            help="NAME, or NAME[PARAMETER=VALUE] where the benchmark has several cases (default: the only "
            "case of the manifest)",
        )
        parser.add_argument(
            "--head-case",
            default="",
            metavar="CASE",
            help="the case of the commit in question, where it is another one than that of A",
        )
        parser.add_argument(
            "--metric",
            default="",
            metavar="M",
            help=f"what is compared, of a phase phase_time:PHASE (default: {experiments.DEFAULT_METRIC})",
        )
        parser.add_argument(
            "--precision",
            default="",
            metavar="P",
            help=f"stop once the difference is known to so much (default: "
            f"{100 * experiments.DEFAULT_PRECISION:g}%%)",
        )
        parser.add_argument(
            "--minutes",
            default="",
            metavar="N",
            help="stop after so long, with what is known by then (default: the project's own, 20 unless "
            "add_project was given others)",
        )
        parser.add_argument(
            "--quick",
            action=argparse.BooleanOptionalAction,
            help="measure the manifest's short windows, or the standard ones (default: as the case was "
            "measured so far)",
        )
        parser.add_argument(
            "--pool",
            default="",
            metavar="POOL",
            help="measure on a machine of this pool (default: the one in which the case was measured so far)",
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help="wait for the answer, with services started for as long as that takes where none run; the "
            "exit status is 1 if a side can't be measured, or the experiment is cancelled",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, not sentences")

    def perform(self, **options: Any) -> None:
        with services.running_services(settings, hosts.local_join_code) if options["wait"] else nullcontext():
            experiment = self.ask(options)
            if options["wait"]:
                self.wait_for_end(experiment)
                experiment = read_experiment(experiment.pk)
            # Before the services end: the answer is read from their database.
            text = json.dumps(as_json(experiment), indent=2) if options["json"] else as_text(experiment)
            self.stdout.write(text)
        if experiment.verdict == Experiment.Verdict.UNTESTABLE or (
            experiment.state == Experiment.State.CANCELLED
        ):
            raise CommandError(sentences.answer_sentence(experiment))

    def ask(self, options: dict[str, Any]) -> Experiment:
        project = project_named(options["project"])
        if not any(options[name] for name in ("head", "toggle", "head_case")):
            raise CommandError("B: it is missing: name the commit to compare with A, or give --toggle.")
        request = EstimateRequest(**{field.name: options[field.name] for field in fields(EstimateRequest)})
        with ProgressBar() as bar:
            bar.show(0, f"Reading {project.repository}")
            try:
                experiment, new = experiments.submit_estimate(
                    project, request, Experiment.Purpose.SCRIPT, command_account()
                )
            except ExperimentError as error:
                where = ARGUMENTS.get(error.field, f"--{error.field.replace('_', '-')}")
                raise CommandError(f"{where}: {error.sentence}") from error
            bar.show(1, f"{project.repository} is read")
        if not new:
            ending = sentences.ending_text(experiment)
            self.stderr.write(
                f"{experiment} asks the same and is under way, {ending}: its answer is this one's."
            )
        return read_experiment(experiment.pk)

    def wait_for_end(self, experiment: Experiment) -> None:
        try:
            with ProgressBar() as bar:
                while True:
                    experiment = read_experiment(experiment.pk)
                    bar.show(*summarize_progress(experiment))
                    if experiment.state in Experiment.TERMINAL:
                        return
                    time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            raise CommandError(
                f"Interrupted: {experiment} stays, and goes on while the services run."
            ) from None


def read_experiment(key: int) -> Experiment:
    """With what is said of it."""
    related = Experiment.objects.select_related(
        *("project", "base_commit", "head_commit", "metric", "machine", "requested_by"),
        *("base_configuration__case", "head_configuration__case"),
    )
    return related.get(pk=key)


def count_pairs(experiment: Experiment) -> tuple[int, int]:
    """(all of its pairs, those that were disturbed)."""
    counts = experiment.pairs.aggregate(measured=Count("pk"), disturbed=Count("pk", filter=Q(disturbed=True)))
    return counts["measured"], counts["disturbed"]


def summarize_progress(experiment: Experiment) -> tuple[float, str]:
    """How much of the budget is spent, from 0 to 1, and what is being done."""
    measured, _ = count_pairs(experiment)
    spent = max(measured / experiment.most_pairs, experiment.seconds / experiment.most_seconds)
    doing = experiment.activity or experiment.state
    if experiment.state in Experiment.TERMINAL:
        return 1.0, f"{experiment}: {sentences.experiment_state_label(experiment)}"
    return min(spent, 1.0), f"{experiment}: {doing}; {sentences.answer_sentence(experiment)}"


def as_text(experiment: Experiment) -> str:
    """A few lines: what was asked, the answer, what it took, the phases that moved."""
    case = experiment.base_configuration.case
    lines = [f"{experiment.project}: {experiment}, {case}, {sentences.sides_text(experiment)}"]
    lines.append(sentences.answer_sentence(experiment))
    if experiment.state in Experiment.TERMINAL and (effort := effort_text(experiment)):
        lines.append(effort)
    lines += [
        f"  {path}: {numbers.format_quantity(row['base'], 's')} → {numbers.format_quantity(row['head'], 's')}"
        f" ({numbers.format_signed_quantity(row['difference'], 's')})"
        for path, row in phase_rows(experiment).items()
    ]
    return "\n".join([*lines, address_of(experiment)])


def effort_text(experiment: Experiment) -> str:
    """`8 pairs (1 disturbed) in 2 min 5 s on gpu-1.`, and whether the precision was reached."""
    measured, disturbed = count_pairs(experiment)
    if not measured:
        return ""
    pairs = f"{measured} pair{'' if measured == 1 else 's'}"
    pairs += f" ({disturbed} disturbed)" if disturbed else ""
    took = f"{pairs} in {numbers.format_duration(experiment.seconds)} on {experiment.machine}."
    if experiment.reason.get("code") != "precision not reached":
        return took
    return f"{took} {upper_first(sentences.reached_text(experiment.reason))}."


def phase_rows(experiment: Experiment) -> dict[str, dict[str, float]]:
    """Own time by phase in seconds per step, the largest difference first; empty without phases."""
    found = paired_phases(experiment)
    if found is None:
        return {}
    order = sorted(found.before, key=lambda path: -abs(found.after[path] - found.before[path]))
    return {
        path: {
            "base": found.before[path],
            "head": found.after[path],
            "difference": found.after[path] - found.before[path],
        }
        for path in order
    }


def as_json(experiment: Experiment) -> dict[str, Any]:
    measured, disturbed = count_pairs(experiment)
    return {
        "id": experiment.pk,
        "project": experiment.project.slug,
        "base": experiment.base_commit.hash,
        "head": experiment.head_commit.hash,
        "case": str(experiment.base_configuration.case),
        "head_case": str(experiment.head_configuration.case),
        "metric": experiment.metric.name,
        "phase": experiment.phase or None,
        "unit": experiment.metric.unit,
        "state": experiment.state,
        "ratio": experiment.ratio,
        "low": experiment.low,
        "high": experiment.high,
        "difference": experiment.difference,
        "difference_low": experiment.difference_low,
        "difference_high": experiment.difference_high,
        "by_steps": experiment.by_steps,
        "verdict": experiment.verdict or None,
        "answer": sentences.answer_sentence(experiment),
        "pairs": measured,
        "disturbed": disturbed,
        "seconds": round(experiment.seconds, 3),
        "machine": experiment.machine.name if experiment.machine else None,
        "quick": experiment.head_configuration.quick,
        "minutes": experiment.most_seconds / 60,
        "precision": experiment.precision,
        "reached_precision": sentences.reached_precision(experiment),
        "reason": experiment.reason,
        "phases": phase_rows(experiment),
        "address": address_of(experiment),
    }


def address_of(experiment: Experiment) -> str:
    return f"{settings.PACELINE_URL}{experiment.get_absolute_url()}"
