"""Fill a site of its own with history, and measure its pages through its web server: `make bench-pages`."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bench.history.plan import HistoryPlan
from bench.pages.tables import CURVE, README, TABLE, format_curve, format_pages, write_figures
from bench.scratch_site import scratch_site

SIZES = (0.25, 0.5, 1.0, 2.0)


def main() -> None:
    """Measure, print, and write what was asked for; status 1 where a page misses a target."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the figures go as JSON")
    parser.add_argument("--scale", type=float, default=1.0, help="of the history: 2 is twice as long")
    parser.add_argument(
        "--curve",
        action="store_true",
        help=f"measure at {len(SIZES)} sizes, one after the other, of which --scale is the third",
    )
    parser.add_argument(
        "--write", action="store_true", help="write what is printed into bench/pages/README.md"
    )
    parser.add_argument(
        "--only", action="append", metavar="PAGE", help="by its name in the table; may be repeated"
    )
    parser.add_argument(
        "--home", type=Path, metavar="FOLDER", help="where the site is filled once, and found again"
    )
    arguments = parser.parse_args()
    curve = ""
    if arguments.curve:
        table, curve, missed = measure_curve(arguments.scale, arguments.json)
    else:
        table, missed = measure_size(arguments.scale, arguments.json, arguments.only or (), arguments.home)
    print("\n\n".join(filter(None, [table, curve])))
    if arguments.write:
        write_figures(README, TABLE, table)
        if curve:
            write_figures(README, CURVE, curve)
    sys.exit(1 if missed else 0)


def plan_of_scale(scale: float) -> HistoryPlan:
    """As many cases and series as ever, and `scale` times as many commits, runs, points and regressions."""
    whole = HistoryPlan()
    return HistoryPlan(
        points=round(whole.points * scale),
        runs=round(whole.runs * scale),
        regressions=round(whole.regressions * scale),
    )


def measure_size(
    scale: float, target: Path | None, only: Collection[str] = (), home: Path | None = None
) -> tuple[str, bool]:
    """(what is printed, whether a page missed a target). `only`: names of pages, all where it is empty."""
    load = os.getloadavg()[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["PORT"] = str(free.getsockname()[1])
    # They are counted as ever, and never refused.
    os.environ["PACELINE_RATES"] = "pages=9999999/s,api=9999999/s"
    plan = plan_of_scale(scale)
    with scratch_site(home), tempfile.TemporaryDirectory() as logs:
        from django.utils import timezone

        from bench.history.filling import fill_site, refresh_statistics
        from bench.pages.measuring import measure_pages, web_server
        from dashboard.models import Project

        if not Project.objects.filter(slug__startswith="history-").exists():
            fill_site(plan, timezone.now(), lambda _share, text: print(text, file=sys.stderr, flush=True))
            refresh_statistics()
        with web_server(Path(logs)) as port:
            figures = dict(measure_pages(port, only))
    if target is not None:
        target.write_text(
            json.dumps({"pages": {name: page.as_json() for name, page in figures.items()}}, indent=1)
        )
    head = [
        f"{'; '.join(plan.describe_parts())}.",
        f"{os.cpu_count()} processors, load {load:.1f} before, {os.getloadavg()[0]:.1f} after; milliseconds.",
    ]
    return "\n".join([*head, "", format_pages(figures)]), any(
        page.missed_targets for page in figures.values()
    )


def measure_curve(whole: float, target: Path | None) -> tuple[str, str, bool]:
    """(the table of size `whole`, the curve over all sizes, whether a page missed a target).

    Each size is measured by a process of its own; `target` gets the figures of size `whole`.
    """
    measured: list[dict[str, dict[str, Any]]] = []
    table, missed = "", False
    with tempfile.TemporaryDirectory() as folder:
        for scale in (share * whole for share in SIZES):
            path = Path(folder, f"{scale}.json")
            command = [sys.executable, "-m", "bench.pages", "--scale", str(scale), "--json", str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if not path.exists():
                sys.exit(f"The site of size {scale} could not be measured.")
            missed |= done.returncode != 0
            measured.append(json.loads(path.read_text())["pages"])
            if scale == whole:
                table = done.stdout.strip()
                if target is not None:
                    target.write_bytes(path.read_bytes())
    sizes = [f"{plan_of_scale(share * whole).points / 1e6:g} M" for share in SIZES]
    curve = format_curve(
        sizes,
        *(
            [{name: page[kind] for name, page in pages.items()} for pages in measured]
            for kind in ("alone_ms", "p95_ms")
        ),
    )
    return table, "By the points that the site holds:\n" + curve, missed


if __name__ == "__main__":
    main()
