"""Public benchmark histories, by source: `python -m bench.detection.sources --clones FOLDER --out FOLDER`.

Each source is a public git repository in which a project keeps what its benchmarks measured. Clone those you
want bare, `git clone --bare https://github.com/OWNER/NAME FOLDER/OWNER+NAME`; what isn't there is left out.
The histories are written to a JSON file per source. They belong to those projects and stay out of this one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from bench.detection.printing import print_line

LEAST_POINTS = 100
MOST_SERIES = 1500  # of a source: its benchmarks in an order by lot
Reading = tuple[str, float, float]  # the series, what its points are ordered by, the value
Reader = Callable[[Iterable[tuple[str, bytes]]], Iterator[Reading]]
ObjectReader = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Source:
    """A repository, the files of one of its branches that hold results, and how to read them."""

    name: str
    repository: str
    branch: str
    files: str  # a regular expression
    read: Reader
    about: str
    every_version: bool = False  # a file holds the newest weeks alone: its older versions hold those before


def read_asv_results(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per commit, machine and environment."""
    for path, content in files:
        document = json.loads(content)
        columns = document.get("result_columns", ["result", "params"])
        _, machine, name_of_file = path.split("/")
        environment = name_of_file.split("-", 1)[1]
        for name, result in document["results"].items():
            row = result if isinstance(result, dict) else {}
            if isinstance(result, list):
                row = dict(zip(columns, result, strict=False))
            values = row.get("result", result if not isinstance(result, list) else None)
            for k, value in enumerate(values if isinstance(values, list) else [values]):
                yield f"{machine}/{environment}/{name}#{k}", float(document["date"]), as_number(value)


def read_asv_graphs(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per benchmark and machine, as the page of results shows it."""
    for path, content in files:
        for revision, values in json.loads(content):
            for k, value in enumerate(values if isinstance(values, list) else [values]):
                yield f"{path}#{k}", float(revision), as_number(value)


def read_action_pages(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """What github-action-benchmark keeps: all commits in one file, or each in its own."""
    for _, content in files:
        text = content.decode()
        document = json.loads(text[text.index("{") : text.rindex("}") + 1])
        for group, entries in document["entries"].items():
            for entry in entries:
                for bench in entry["benches"]:
                    yield f"{group}/{bench['name']}", float(entry["date"]), as_number(bench["value"])


def read_sandmark(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One folder per night, host and commit; one line per program."""
    for path, content in files:
        parts = path.split("/")
        for line in content.decode().splitlines():
            row = parse_line(line)
            if "time_secs" in row:
                night = float(parts[2].replace("_", ""))
                yield f"{parts[1]}/{row['name']}", night, as_number(row["time_secs"])


def read_ruby_nights(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per benchmark; a line per night with a value for each variant."""
    for path, content in files:
        for night, values in re.findall(r"(?m)^(\d{8}): \[(.*)\]$", content.decode()):
            for k, value in enumerate(values.split(",")):
                yield f"{path}#{k}", float(night), as_number(value)


def read_hana(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One table per series; a line per measurement."""
    for path, content in files:
        for row in csv.DictReader(content.decode().splitlines()):
            yield path, float(row["index_1based"]), as_number(row["value"])


def read_perfherder(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """An answer of Perfherder's database: a row per push, test and platform."""
    for _, content in files:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        for row in json.loads(text)["query_result"]["data"]["rows"]:
            keys = ("platform", "application", "repository", "suite", "test")
            name = "/".join(row[key] for key in keys if row.get(key))
            yield name, as_time(row["date"]), as_number(row["value"])


def read_rustc_timings(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per program and compiler; the seconds that each of its crates takes."""
    for path, content in files:
        program, date = path.removesuffix(".json").rsplit("--", 1)
        for crate in parse_line(content.decode()).get("times", []):
            name = f"{program}/{crate['crate']}"
            yield name, float(re.sub(r"\D", "", date).ljust(14, "0")), as_number(crate.get("total"))


def read_php_nights(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One table per night; a line per program and build, one of which never changes."""
    for path, content in files:
        _, digits, machine = re.split(r"/(\d{4}(?:_\d\d){5})_\d_", path.rsplit("/", 1)[0])
        for row in csv.DictReader(content.decode().splitlines(), delimiter="\t"):
            name = f"{machine}/{row['Test name']}/{row['PHP']}"
            yield name, float(digits.replace("_", "")), as_number(row["Median"])


def read_enso_runs(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per scheduled run; a time per benchmark."""
    for _, content in files:
        document = json.loads(content)
        if document["bench_run"]["event"] == "schedule":
            for name, value in document["label_score_dict"].items():
                yield name, float(document["bench_run"]["id"]), as_number(value)


def read_unified_runtime(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per run of a machine with a GPU; some are JSON in a JSON string."""
    for _, content in files:
        document = json.loads(content)
        document = json.loads(document) if isinstance(document, str) else document
        for result in document["results"]:
            yield (
                f"{document['name']}/{result['label']}",
                as_time(document["date"]),
                as_number(result["value"]),
            )


def read_legion(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per measurement; the nodes of a cluster are one pool."""
    for _, content in files:
        document = json.loads(content)
        about = document["metadata"]
        pool = re.sub(r"^n\d+\.", "", about["host"])
        name = "/".join([pool, about["branch"], about["benchmark"], *about["argv"]])
        yield name, as_time(about["date"]), as_number(document["measurements"].get("time_seconds"))


def read_google_benchmark(files: Iterable[tuple[str, bytes]]) -> Iterator[Reading]:
    """One file per run of a program that is built on Google's benchmark library."""
    for path, content in files:
        document = json.loads(content)
        for result in document["benchmarks"]:
            name = f"{path.rsplit('_', 2)[0]}/{result['name']}"
            yield name, as_time(document["context"]["date"]), as_number(result.get("real_time"))


def parse_line(line: str) -> dict[str, Any]:
    """The object of a text; an empty one for a text that was cut off while it was written."""
    try:
        row: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return row


def as_number(value: object) -> float:
    """A float, or not a number for anything else that a file may hold."""
    try:
        return float(value)  # type: ignore[arg-type]  # None and text raise, which is answered
    except (TypeError, ValueError):
        return math.nan


def as_time(date: str) -> float:
    """Seconds since 1970 of a date in ISO form."""
    return datetime.fromisoformat(date).timestamp()


ACTION_DATA = r"dev/bench/data\.js"
SOURCES = (
    Source(
        "scipy",
        "pv/scipy-bench",
        "master",
        r"results/(i7|atom)/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on two machines of one person's",
    ),
    Source(
        "django",
        "django/django-asv",
        "main",
        r"results/ubuntu-latest/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on shared runners, whose processor changes by lot",
    ),
    Source(
        "sunpy",
        "sunpy/sunpy-benchmarks",
        "main",
        r"results/GH-Actions/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on shared runners",
    ),
    Source(
        "uxarray",
        "UXARRAY/uxarray-asv",
        "main",
        r"results/.*/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on shared runners",
    ),
    Source(
        "photutils",
        "astropy/photutils-benchmarks",
        "main",
        r"results/.*/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on a small desktop",
    ),
    Source(
        "emg3d",
        "emsig/emg3d-bench",
        "main",
        r"results/.*/[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on a laptop and a server",
    ),
    Source(
        "sympy",
        "asmeurer/sympy_benchmarks",
        "gh-pages",
        r"graphs/arch.*\.time_.*\.json",
        read_asv_graphs,
        "asv on one person's machine",
    ),
    Source(
        "newton",
        "newton-physics/newton-asv",
        "main",
        r"results/.*/(\d+_)?[0-9a-f]{8}-.*\.json",
        read_asv_results,
        "asv on machines with GPUs: simulations and environments for training",
    ),
    Source("hyper", "hyperium/hyper", "gh-pages", ACTION_DATA, read_action_pages, "shared runners"),
    Source(
        "safetensors", "huggingface/safetensors", "gh-pages", ACTION_DATA, read_action_pages, "shared runners"
    ),
    Source(
        "maxtext",
        "AI-Hypercomputer/maxtext",
        "gh-pages",
        ACTION_DATA,
        read_action_pages,
        "training of language models on accelerators",
    ),
    Source(
        "swc",
        "swc-project/raw-data",
        "gh-pages",
        r".*/benchmark-data\.json",
        read_action_pages,
        "shared runners",
    ),
    Source(
        "ocaml",
        "ocaml-bench/sandmark-nightly",
        "main",
        r"sequential/.*trunk(\+vanilla)?\+sequential_1\.orun\.summary\.bench",
        read_sandmark,
        "two servers that do nothing else, every night",
    ),
    Source(
        "ruby",
        "rubybench/rubybench-data",
        "main",
        r"ruby.*\.yml",
        read_ruby_nights,
        "one server, every night",
    ),
    Source(
        "mozilla",
        "mozilla/performance-data",
        "main",
        r"(ml|jetstream)-data\.json(\.gz)?",
        read_perfherder,
        "Perfherder: browsers on pools of desktops and telephones",
        every_version=True,
    ),
    Source(
        "rustc",
        "rust-lang-nursery/rustc-timing-archive",
        "master",
        r"processed/.*\.json",
        read_rustc_timings,
        "rustc-perf's first years: one server, every night",
    ),
    Source(
        "hana",
        "SAP/performance-regression-data-set",
        "main",
        r"hana/large_2022/data/\d+0__.*\.csv",
        read_hana,
        "SAP HANA, a tenth of its benchmarks",
    ),
    Source(
        "intel",
        "oneapi-src/unified-runtime",
        "benchmark-results",
        r"results/Baseline_.*\.json",
        read_unified_runtime,
        "two machines with GPUs",
    ),
    Source("cuda", "JuliaGPU/CUDA.jl", "gh-pages", r"bench/data\.js", read_action_pages, "GPU kernels"),
    Source("metal", "JuliaGPU/Metal.jl", "gh-pages", r"bench/data\.js", read_action_pages, "GPU kernels"),
    Source(
        "tensordict",
        "pytorch/tensordict",
        "gh-pages",
        ACTION_DATA,
        read_action_pages,
        "PyTorch on shared runners, with and without a GPU",
    ),
    Source(
        "php",
        "php/real-time-benchmark-data",
        "main",
        r".*/result\.tsv",
        read_php_nights,
        "two machines of a cloud without neighbours, every night",
    ),
    Source(
        "enso", "enso-org/engine-benchmark-results", "main", r"cache/\d+\.json", read_enso_runs, "own runners"
    ),
    Source(
        "legion",
        "StanfordLegion/perf-data",
        "master",
        r"measurements/.*\.json",
        read_legion,
        "the nodes of a cluster",
    ),
    Source(
        "kokkos",
        "kokkos/kokkos-benchmark-results",
        "main",
        r"ubuntu:latest-g\+\+-OPENMP/Kokkos_PerformanceTest_.*\.json",
        read_google_benchmark,
        "Google Benchmark on shared runners",
    ),
    Source(
        "avalanche", "ava-labs/avalanchego", "gh-pages", ACTION_DATA, read_action_pages, "machines of a cloud"
    ),
    Source("pypdf", "py-pdf/pypdf", "gh-pages", ACTION_DATA, read_action_pages, "shared runners"),
    Source(
        "opentelemetry",
        "open-telemetry/opentelemetry-cpp",
        "gh-pages",
        r"benchmarks/data\.js",
        read_action_pages,
        "shared runners",
    ),
)


def read_files(repository: Path, source: Source) -> Iterator[tuple[str, bytes]]:
    """Paths and contents of the files of a source; of one whose content isn't there its newest that is."""
    git = ["git", f"--git-dir={repository}"]
    listing = subprocess.run([*git, "ls-tree", "-rz", source.branch], capture_output=True, check=True)
    rows = [row.split("\t", 1) for row in listing.stdout.decode().split("\0") if row]
    names = {path: about.split()[2] for about, path in rows if re.fullmatch(source.files, path)}
    with open_objects(git) as read:
        for path, name in names.items():
            for content in file_versions(git, read, source, path, name):
                yield path, content


def file_versions(
    git: Sequence[str], read: ObjectReader, source: Source, path: str, newest: str
) -> Iterator[bytes]:
    """The newest content of a file that is there, or all of them."""
    content = None if source.every_version else read(newest)
    if content is not None:
        yield content
        return
    for version in older_versions(git, source.branch, path):
        content = read(version)
        if content is not None:
            yield content
            if not source.every_version:
                return


def older_versions(git: Sequence[str], branch: str, path: str) -> list[str]:
    """The versions of a file, newest first, as names of objects."""
    log = subprocess.run([*git, "log", "--format=%H", branch, "--", path], capture_output=True, check=True)
    return [f"{commit}:{path}" for commit in log.stdout.decode().split()]


@contextmanager
def open_objects(git: Sequence[str]) -> Iterator[ObjectReader]:
    """A function that gives the content of an object by its name; None where a clone lacks it."""
    with subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        requests, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

        def read(name: str) -> bytes | None:
            requests.write(f"{name}\n".encode())
            requests.flush()
            *_, size = answers.readline().split()
            return answers.read(int(size) + 1)[:-1] if size.isdigit() else None

        yield read


def collect_series(readings: Iterable[Reading]) -> list[dict[str, Any]]:
    """The positive values of each series in order, one per commit: the last that was stored."""
    series: dict[str, dict[float, float]] = defaultdict(dict)
    for name, order, value in readings:
        if math.isfinite(value) and value > 0:
            series[name][order] = value
    long = sorted(name for name, points in series.items() if len(points) >= LEAST_POINTS)
    chosen = sorted(random.Random(1).sample(long, min(len(long), MOST_SERIES)))
    return [{"series": name, "values": [series[name][at] for at in sorted(series[name])]} for name in chosen]


def write_source(source: Source, clones: Path, out: Path) -> int:
    """How many series of a source were written; 0 where its clone isn't there."""
    repository = clones / source.repository.replace("/", "+")
    if not repository.exists():
        return 0
    series = collect_series(source.read(read_files(repository, source)))
    (out / f"{source.name}.json").write_text(json.dumps(series))
    return len(series)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a file per source."""
    parser = argparse.ArgumentParser(description="Prepare public benchmark histories.")
    parser.add_argument("--clones", type=Path, required=True, help="folder of bare clones named OWNER+NAME")
    parser.add_argument("--out", type=Path, required=True, help="folder outside of the repository")
    parser.add_argument("--only", default="", help="sources, separated by commas; all without it")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    only = options.only.split(",") if options.only else [source.name for source in SOURCES]
    for source in SOURCES:
        if source.name in only:
            print_line(f"{source.name}: {write_source(source, options.clones, options.out)} series")


if __name__ == "__main__":
    main()
