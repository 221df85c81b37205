"""A series as asv publishes it: its page, its scripts, `index.json`, and a JSON file for the graph."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.gunicorn_server import running_server
from bench.other_tools.history import MeasuredCommit

BENCHMARK = "step_time"
# `arch` and the others as `asv machine` asks for them; `branch` is added by `asv publish`.
PARAMETERS = {
    "arch": "x86_64",
    "branch": "main",
    "cpu": "cpu",
    "machine": "machine",
    "num_cpu": "2",
    "os": "Linux",
    "python": "3.11",
    "ram": "8G",
}
# What asv's page loads from other hosts -> the same in npm's packages. Those of flot are not minified there.
LIBRARIES = {
    "jquery-3.3.1.min.js": "jquery/dist/jquery.min.js",
    "jquery.flot.min.js": "flot/jquery.flot.js",
    "jquery.flot.time.min.js": "flot/jquery.flot.time.js",
    "jquery.flot.selection.min.js": "flot/jquery.flot.selection.js",
    "jquery.flot.categories.min.js": "flot/jquery.flot.categories.js",
    "jquery.flot.orderBars.js": "flot-orderbars/js/jquery.flot.orderBars.js",
    "stupidtable.min.js": "stupid-table-plugin/stupidtable.min.js",
    "md5.min.js": "blueimp-md5/js/md5.min.js",
    "bootstrap.min.js": "bootstrap/dist/js/bootstrap.min.js",
    "bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
}
REMOTE = re.compile(r'(src|href)="https://[^"]*/([^"/]+\.(?:js|css))"')
INTEGRITY = re.compile(r' (?:integrity|crossorigin|referrerpolicy)="[^"]*"')


def publish_history(sources: Path, target: Path, commits: Sequence[MeasuredCommit]) -> None:
    """Write into the new folder `target` what `asv publish` would, of commits that are oldest first.

    `sources` holds a checkout of asv, and `node_modules` with LIBRARIES. ValueError names a library of asv's
    page that is none of these.
    """
    shutil.copytree(sources / "asv/asv/www", target)
    page = target / "index.html"
    page.write_text(localize_libraries(page.read_text()))
    (target / "lib").mkdir()
    for name, path in LIBRARIES.items():
        shutil.copyfile(sources / "node_modules" / path, target / "lib" / name)
    (target / "info.json").write_text(json.dumps({"asv-version": "0.6.6", "timestamp": 1}))
    (target / "index.json").write_text(dump_compactly(describe_index(commits)))
    graph = target / graph_path()
    graph.parent.mkdir(parents=True)
    graph.write_text(dump_compactly([[number, commit.value] for number, commit in enumerate(commits)]))
    # As hosts of static pages send them.
    subprocess.run([sys.executable, "-m", "whitenoise.compress", "--quiet", str(target)], check=True)


def localize_libraries(page: str) -> str:
    """The page with its libraries from its own host: kinder to it than a second host."""
    unknown = [name for _, name in REMOTE.findall(page) if name not in LIBRARIES]
    if unknown:
        raise ValueError(f"asv's page loads {unknown[0]}, which isn't known here.")
    return INTEGRITY.sub("", REMOTE.sub(r'\1="lib/\2"', page))


def describe_index(commits: Sequence[MeasuredCommit]) -> dict[str, object]:
    """Return `index.json` of one benchmark on one machine."""
    return {
        "project": "long",
        "project_url": "#",
        "show_commit_url": "#",
        "hash_length": 8,
        "revision_to_hash": {str(number): commit.hash for number, commit in enumerate(commits)},
        "revision_to_date": {
            str(number): round(1000 * commit.at.timestamp()) for number, commit in enumerate(commits)
        },
        "params": {name: [value] for name, value in PARAMETERS.items()},
        "graph_param_list": [PARAMETERS],
        "benchmarks": {
            BENCHMARK: {
                "name": BENCHMARK,
                "type": "time",
                "unit": "seconds",
                "code": "",
                "params": [],
                "param_names": [],
                "version": "1",
            }
        },
        "machines": {"machine": {"machine": "machine", "version": 1}},
        "tags": {},
        "pages": [
            ["", "Grid view", "Display as an agglomerated grid"],
            ["summarylist", "List view", "Display as a list"],
            ["regressions", "Show regressions", "Display information about recent regressions"],
        ],
    }


def graph_path() -> Path:
    """Where asv's page looks for the graph."""
    return Path(
        "graphs", *sorted(f"{name}-{value}" for name, value in PARAMETERS.items()), f"{BENCHMARK}.json"
    )


def dump_compactly(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def create_application() -> object:
    """Return what serves the files in BESIDE_PUBLISHED; gunicorn calls it by its name."""
    from whitenoise import WhiteNoise

    def answer_missing(_environ: object, start_response: object) -> list[bytes]:
        start_response("404 Not Found", [])  # type: ignore[operator]
        return [b""]

    return WhiteNoise(answer_missing, root=os.environ["BESIDE_PUBLISHED"], index_file=True)


@contextmanager
def serve_published(folder: Path) -> Iterator[str]:
    """The address of what was published there, behind as many processes as the site has."""
    with running_server(
        [sys.executable],
        "bench.other_tools.asv_site:create_application()",
        {"BESIDE_PUBLISHED": str(folder)},
    ) as address:
        yield address
