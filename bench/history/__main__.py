"""Fill the running site of PACELINE_HOME, or of DATABASE_URL, with history that nobody measured."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import fields

from paceline.progress_bar import ProgressBar

from bench.history.plan import HistoryPlan, PlanError

HELP = {
    "series": "series of all projects together",
    "points": "points; as many a run as a case has series",
    "runs": "runs that ended well; some more failed",
    "regressions": "regressions, each with its change and most with a proof",
    "projects": "projects",
    "documents": "of the newest runs, how many have a document with phases, telemetry and a profile",
    "seed": "the same seed makes the same values",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    for field in fields(HistoryPlan):
        parser.add_argument(
            f"--{field.name}",
            type=int,
            default=field.default,
            help=f"{HELP[field.name]}; default {field.default:,}",
        )
    plan = HistoryPlan(**vars(parser.parse_args()))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django

    django.setup()
    from django.utils import timezone

    from bench.history.filling import fill_site, refresh_statistics
    from dashboard.models import Project

    if Project.objects.filter(slug__startswith="history-").exists():
        sys.exit(
            "This site has such a history already: remove the projects history-1, history-2 and so on first."
        )
    begun = time.perf_counter()
    try:
        with ProgressBar() as bar:
            fill_site(plan, timezone.now(), bar.show)
            bar.show(1.0, "statistics for the planner")
            refresh_statistics()
    except PlanError as error:
        sys.exit(str(error))
    print(f"{'; '.join(plan.describe_parts())}. It took {time.perf_counter() - begun:.0f} s.")


if __name__ == "__main__":
    main()
