"""What a site's database holds and what its queries take, at the size that it has: for docs/scale.md.

`python -m bench.scale --json FILE` measures the running site of PACELINE_HOME, or of DATABASE_URL;
`python -m bench.scale --write FILE...` writes what such files hold into the document, smallest site first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs/scale.md"
MARKERS = ("<!-- figures: python -m bench.scale --write -->", "<!-- end of figures -->")
PAPER_MARKERS = ("<!-- paper: python -m bench.scale --write -->", "<!-- end of paper -->")
LOOKS = 40
# A run of so many series, as it is stored: so many runs in one transaction, which is rolled back.
RUN_SERIES, RUNS_STORED = 300, 20
PAGE_ROWS = 300
GIGABYTE = 1e9
# The site on paper: machines, how often each ends a run, of how many series, until it holds how many points.
MACHINES, MINUTES_A_RUN, SERIES_A_RUN, POINTS = 1000, 30, 100, 10**9
# Of a run through the broker: a wake-up of its pool, its judgement, what judging sends, and one to spare.
MESSAGES_A_RUN = 4

JUDGEMENT = "a history as one judgement reads it"

SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relname LIKE 'dashboard_%' ORDER BY pg_total_relation_size(oid) DESC
"""
INDEXES = """
SELECT indexrelname, pg_relation_size(indexrelid) FROM pg_stat_user_indexes
WHERE relname = 'dashboard_point' ORDER BY indexrelname
"""


def measure_site() -> dict[str, Any]:
    """Sizes in bytes, times in milliseconds; each query of other rows each time, the median of LOOKS."""
    from django.db import connection

    from dashboard.models import Point, Run, Series

    with connection.cursor() as cursor:
        cursor.execute(SIZES)
        tables = {name: [table, indexes] for name, table, indexes in cursor.fetchall()}
        cursor.execute(INDEXES)
        indexes = dict(cursor.fetchall())
        cursor.execute("SELECT pg_database_size(current_database())")
        database = cursor.fetchone()[0]
    return {
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "points": Point.objects.count(),
        "series": Series.objects.count(),
        "runs": Run.objects.count(),
        "database": database,
        "tables": tables,
        "point_indexes": indexes,
        "queries": measure_queries(),
        "stored_per_second": measure_storing(),
    }


def measure_queries() -> dict[str, float]:
    """By what a page asks for, the median milliseconds."""
    from django.db.models import Max, Min

    from dashboard.models import Project, Series
    from dashboard.querysets import noise, trends
    from dashboard.querysets.case_grid import read_case_states
    from dashboard.querysets.commits import values_before
    from dashboard.regressions.series.branch_line import branch_line
    from dashboard.regressions.series.history import load_recent

    drawn = random.Random(1)
    projects = list(Project.objects.filter(slug__startswith="history-").order_by("pk"))
    bounds = Series.objects.aggregate(first=Min("pk"), last=Max("pk"))

    def any_series() -> Series:
        key = drawn.randint(bounds["first"], bounds["last"])
        found = Series.objects.select_related("metric", "configuration__case__project").filter(pk__gte=key)
        return found.order_by("pk")[0]

    def look_before_a_commit() -> Callable[[], object]:
        project = drawn.choice(projects)
        commit = project.commits.filter(branch=project.branch).latest("position")
        of_project = Series.objects.filter(configuration__case__project=project)
        keys = list(of_project.values_list("pk", flat=True)[:PAGE_ROWS])
        return lambda: values_before(project, commit, keys)

    def look_at_noise() -> Callable[[], object]:
        project = drawn.choice(projects)
        keys = [state.series for state in read_case_states(project, "step_time")[:50]]
        return lambda: noise.newest_points(keys)

    def look_at_trend() -> Callable[[], object]:
        series = any_series()
        return lambda: trends.newest_rows(series, series.configuration.case.project.branch, PAGE_ROWS)

    def judge() -> Callable[[], object]:
        series = any_series()
        project = series.configuration.case.project
        line = branch_line(project, project.branch)
        return lambda: load_recent([series], line, 10**6)

    def look_at_grid() -> Callable[[], object]:
        project = drawn.choice(projects)
        return lambda: read_case_states(project, "throughput")

    looks = {
        f"the newest {PAGE_ROWS} points of a series": look_at_trend,
        JUDGEMENT: judge,
        f"the values before a commit of {PAGE_ROWS} series": look_before_a_commit,
        "the noise of 50 cases": look_at_noise,
        "the grid of a project's cases": look_at_grid,
    }
    return {name: measure_look(prepare) for name, prepare in looks.items()}


def measure_look(prepare: Callable[[], Callable[[], object]]) -> float:
    times = []
    for _ in range(LOOKS):
        look = prepare()
        began = time.perf_counter()
        look()
        times.append(time.perf_counter() - began)
    return 1000 * median(times)


def measure_storing() -> float:
    """Points a second of runs that are stored one after the other as ingest stores them, indexes and all."""
    from django.db import connection, transaction

    from dashboard.models import Point, Run, Series

    with transaction.atomic():
        newest = Run.objects.filter(state=Run.State.DONE).latest("pk")
        series = list(
            Series.objects.filter(configuration=newest.configuration_id).values_list("pk", flat=True)
        )
        others = Series.objects.exclude(pk__in=series).values_list("pk", flat=True)
        series += list(others[: RUN_SERIES - len(series)])
        runs = []
        for _ in range(RUNS_STORED):
            newest.pk = None
            newest.save(force_insert=True)
            runs.append(newest.pk)
        began = time.perf_counter()
        for run in runs:
            Point.objects.bulk_create(
                Point(
                    series_id=key, position=10**6, run_id=run, value=1.0, low=0.9, high=1.1, samples=[1.0] * 5
                )
                for key in series
            )
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        seconds = time.perf_counter() - began
        transaction.set_rollback(True)
    return len(series) * len(runs) / seconds


def format_sites(sites: Sequence[dict[str, Any]]) -> str:
    """A table with a column for each site."""
    ordered = sorted(sites, key=lambda site: site["points"])
    names = ("row", "indexes", "everything else")
    parts = zip(*map(bytes_a_point, ordered), strict=True)
    rows = [
        ("points", [f"{site['points']:,}" for site in ordered]),
        ("series", [f"{site['series']:,}" for site in ordered]),
        ("runs", [f"{site['runs']:,}" for site in ordered]),
        ("database, GB", [f"{site['database'] / GIGABYTE:.2f}" for site in ordered]),
        *(
            (f"bytes a point: {name}", [f"{part:.0f}" for part in of_sites])
            for name, of_sites in zip(names, parts, strict=True)
        ),
        *(
            (f"ms: {name}", [f"{site['queries'][name]:.1f}" for site in ordered])
            for name in ordered[0]["queries"]
        ),
        (
            f"points stored a second, runs of {RUN_SERIES}",
            [f"{site['stored_per_second']:,.0f}" for site in ordered],
        ),
        ("processors, load", [f"{site['processors']}, {site['load']:.1f}" for site in ordered]),
    ]
    head, *body = [" | ".join([name, *values]) for name, values in rows]
    lines = [f"| {head} |", "|---" + "|---:" * len(ordered) + "|", *(f"| {row} |" for row in body)]
    return "\n".join(lines)


def bytes_a_point(site: dict[str, Any]) -> list[float]:
    """Of its row, of its indexes, and of all else in the database."""
    table, indexes = site["tables"]["dashboard_point"]
    return [size / site["points"] for size in (table, indexes, site["database"] - table - indexes)]


def format_paper(site: dict[str, Any]) -> str:
    """What the site on paper asks for, by the bytes and the milliseconds of a measured one."""
    runs_a_second = MACHINES / (60 * MINUTES_A_RUN)
    stored = runs_a_second * SERIES_A_RUN
    row, indexes, rest = (part * POINTS / GIGABYTE for part in bytes_a_point(site))
    judging = runs_a_second * SERIES_A_RUN * site["queries"][JUDGEMENT] / 1000
    rows = [
        (
            "machines, minutes between their runs, series of a run",
            f"{MACHINES:,}, {MINUTES_A_RUN}, {SERIES_A_RUN}",
        ),
        ("runs a second", f"{runs_a_second:.2f}"),
        ("points stored a second", f"{stored:.0f}"),
        ("of what one process stores", f"{stored / site['stored_per_second']:.1%}"),
        (f"days until {POINTS:,} points", f"{POINTS / stored / 86400:,.0f}"),
        ("points, GB", f"{row:,.0f}"),
        ("their indexes, GB", f"{indexes:,.0f}"),
        ("everything else, GB", f"{rest:,.0f}"),
        ("processors that read histories for judging", f"{judging:.2f}"),
        ("broker messages a second", f"{runs_a_second * MESSAGES_A_RUN:.1f}"),
    ]
    return "\n".join(["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)])


def write_tables(sites: Sequence[dict[str, Any]]) -> None:
    largest = max(sites, key=lambda site: site["points"])
    text = DOCUMENT.read_text()
    for (begin, end), table in ((MARKERS, format_sites(sites)), (PAPER_MARKERS, format_paper(largest))):
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    DOCUMENT.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go")
    parser.add_argument("--write", type=Path, nargs="+", metavar="FILE", help="figures for docs/scale.md")
    arguments = parser.parse_args()
    if arguments.write:
        write_tables([json.loads(path.read_text()) for path in arguments.write])
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django

    django.setup()
    figures = measure_site()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))
    print(format_sites([figures]))


if __name__ == "__main__":
    main()
