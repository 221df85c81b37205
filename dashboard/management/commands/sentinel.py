from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from dashboard import repositories, runs, sentinels
from dashboard.access import AuditAction, command_account, record_action
from dashboard.management.base import SiteCommand, project_named
from dashboard.models import Commit, Project, Sentinel
from dashboard.repositories import RepositoryError
from dashboard.sentences.formatting.numbers import format_count


class Command(SiteCommand):
    help = (
        "A project's sentinels: one pinned commit of each case, measured daily on each machine, so that a "
        "machine that moved is distinguished from code that moved. Without options it lists them. "
        "Example: manage.py sentinel my-training --commit v1.0"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the project's name")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--commit", metavar="REV", help="pin this commit; what was measured so far is dropped"
        )
        choice.add_argument(
            "--off", action="store_true", help="measure no sentinels of this project any more"
        )
        choice.add_argument("--on", action="store_true", help="measure them again")

    def perform(self, **options: Any) -> None:
        project = project_named(options["slug"])
        if options["off"] or options["on"]:
            with transaction.atomic():
                Project.objects.filter(pk=project.pk).update(sentinels=options["on"])
                about = {"change": "on" if options["on"] else "off"}
                record_action(command_account(), AuditAction.SENTINELS_CHANGED, project, project, **about)
            does = "are measured daily" if options["on"] else "aren't measured any more"
            self.stdout.write(f"The sentinels of {project} {does}.")
        elif options["commit"]:
            self.pin(project, options["commit"])
        else:
            self.show(project)

    def pin(self, project: Project, revision: str) -> None:
        commit = resolve_commit(project, revision)
        with transaction.atomic():
            pinned = sentinels.pin_commit(project, commit)
            if pinned:
                about = {"change": "pinned", "commit": commit.hash}
                record_action(command_account(), AuditAction.SENTINELS_CHANGED, project, project, **about)
        if not pinned:
            raise CommandError(
                f"No case of {project} was measured these days on a machine that lives: "
                f"begin with manage.py trigger {project}."
            )
        pairs = format_count(len(pinned), "pair")
        self.stdout.write(f"{commit} is the sentinel of {pairs} of case and machine.")

    def show(self, project: Project) -> None:
        rows = Sentinel.objects.filter(configuration__case__project=project).select_related(
            "configuration__case", "machine", "commit"
        )
        state = "on" if project.sentinels else "off"
        verb = "is" if len(rows) == 1 else "are"
        self.stdout.write(f"Sentinels of {project} are {state}; {len(rows)} {verb} pinned.")
        for row in rows.order_by("configuration__case", "machine", "pk"):
            by = "by hand" if row.by_hand else "chosen"
            times = format_count(row.points.values("run").distinct().count(), "time")
            self.stdout.write(f"{row.case} on {row.machine}: {row.commit}, {by}, measured {times}")


def resolve_commit(project: Project, revision: str) -> Commit:
    """The commit that a revision names, in the newest state of the repository."""
    if not project.repository:
        raise CommandError(f"{project} has no repository, only an imported history: nothing can be pinned.")
    mirror = project.mirror
    try:
        mirror.fetch()
        sha = repositories.resolve_revision(mirror, revision)
        return runs.get_or_create_commits(project, repositories.read_commits(mirror, [sha]))[sha]
    except RepositoryError as error:
        raise CommandError(str(error)) from error
