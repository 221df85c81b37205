from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from paceline.progress_bar import ProgressBar

from dashboard import hosts, pull_requests, services
from dashboard.access import AuditAction, command_account, record_action
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Check
from dashboard.pull_requests import CheckError, sentences
from dashboard.pull_requests.report import CheckReport, read_report
from dashboard.sentences.formatting.metric_labels import metric_label

POLL_SECONDS = 0.5


class Command(SiteCommand):
    help = (
        "Check a branch as a pull request is checked: its newest commit against the merge base with the "
        "branch that it is to be merged into, for the benchmarks that its changed files touch. The answer is "
        "one of three: worse, not worse, not known. "
        "Example: manage.py check_commit my-training faster-replay --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's name")
        parser.add_argument("head", metavar="HEAD", help="the branch, tag or commit in question")
        parser.add_argument(
            "--onto",
            default="",
            metavar="BRANCH",
            help="what it is to be merged into (default: the project's)",
        )
        parser.add_argument(
            "--benchmark",
            action="append",
            default=[],
            metavar="NAME",
            help="check this benchmark, whatever the head touches; may be repeated",
        )
        parser.add_argument(
            "--minutes", type=float, metavar="N", help="measure so long at most (default: the project's, 20)"
        )
        parser.add_argument(
            "--quick",
            action=argparse.BooleanOptionalAction,
            help="measure the manifest's short windows, or the standard ones (default: as each case was "
            "measured so far)",
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help="wait for the answer, with services started for as long as that takes where none run; the "
            "exit status is 1 where the head is worse",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, not sentences")

    def perform(self, **options: Any) -> None:
        project = project_named(options["project"])
        with services.running_services(settings, hosts.local_join_code) if options["wait"] else nullcontext():
            try:
                wanted = pull_requests.CheckRequest(
                    options["head"],
                    options["onto"],
                    benchmarks=options["benchmark"],
                    quick=options["quick"],
                    minutes=options["minutes"],
                )
                check = pull_requests.request_check(project, wanted)
                record_action(command_account(), AuditAction.CHECK_REQUESTED, project, check)
            except CheckError as error:
                raise CommandError(str(error)) from error
            if options["wait"]:
                wait_for_end(check)
            report = report_of(check.pk)
            self.stdout.write(json.dumps(as_json(report), indent=2) if options["json"] else as_text(report))
        if sentences.status_state(report.check) == "failure":
            raise CommandError(sentences.answer_headline(report))


def report_of(key: int) -> CheckReport:
    return read_report(Check.objects.select_related("project", "base_commit", "pull_request").get(pk=key))


def wait_for_end(check: Check) -> None:
    try:
        with ProgressBar() as bar:
            while True:
                report = report_of(check.pk)
                ended = report.check.state not in Check.ACTIVE
                bar.show(1.0 if ended else report.spent, sentences.answer_headline(report))
                if ended:
                    return
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        raise CommandError(f"Interrupted: {check} stays, and goes on while the services run.") from None


def as_text(report: CheckReport) -> str:
    """The answer, what it was measured by, a line for each metric, and what it comes from."""
    check = report.check
    lines = [f"{check.project}: {check}, {sentences.commits_text(check)}", sentences.answer_headline(report)]
    for row in report.shown:
        metric = metric_label(row.bounded.metric.name)
        change = sentences.change_text(row.bounded) or "too few pairs"
        lines.append(f"  {row.case}  {metric}  {change}  {sentences.verdict_text(row.bounded)}")
    lines += [f"  {unmoved}"] if (unmoved := sentences.unmoved_text(report)) else []
    lines += [f"  {sentence}" for sentence in sentences.cause_sentences(report)]
    lines += [f"  {sentence}" for sentence in sentences.left_out_sentences(report)]
    return "\n".join([*lines, sentences.check_address(check)])


def as_json(report: CheckReport) -> dict[str, Any]:
    check = report.check
    return {
        "id": check.pk,
        "project": check.project.slug,
        "head": check.head_hash,
        "base": check.base_commit.hash if check.base_commit else None,
        "onto": check.onto,
        "state": check.state,
        "answer": check.answer or None,
        "sentence": sentences.answer_headline(report),
        "reason": check.reason,
        "floor": check.floor,
        "rows": [sentences.row_values(row) for row in report.rows],
        "causes": sentences.cause_sentences(report),
        "left_out": check.left_out,
        "pairs": report.pairs,
        "machines": list(report.machines),
        "commands": list(report.commands),
        "address": sentences.check_address(check),
    }
