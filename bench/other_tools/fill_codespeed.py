"""Run by codespeed's own Python: fills its models with the commits that come as JSON by standard input."""

from __future__ import annotations

import json
import sys
from datetime import datetime


def main() -> None:
    import django

    django.setup()
    from codespeed.models import Benchmark, Branch, Environment, Executable, Project, Result, Revision
    from django.db import connection

    commits = json.load(sys.stdin)
    project = Project.objects.create(name="long", default_branch="main", track=True)
    branch = Branch.objects.create(name="main", project=project)
    executable = Executable.objects.create(name="train", project=project)
    environment = Environment.objects.create(name="machine")
    benchmark = Benchmark.objects.create(name="step_time", units="seconds", units_title="Time")
    revisions = Revision.objects.bulk_create(
        Revision(
            commitid=commit["commitid"],
            date=datetime.fromisoformat(commit["date"]),
            message=commit["message"],
            project=project,
            branch=branch,
        )
        for commit in commits
    )
    Result.objects.bulk_create(
        Result(
            value=commit["value"],
            std_dev=commit["std_dev"],
            date=revision.date,
            revision=revision,
            executable=executable,
            benchmark=benchmark,
            environment=environment,
        )
        for revision, commit in zip(revisions, commits, strict=True)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


main()
