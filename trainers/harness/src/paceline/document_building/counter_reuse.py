"""Taking counters over from a commit that was counted before, where nothing that is counted has changed.

Counters repeat exactly, so a commit that leaves alone every file that the counting read has the counters of
the commit before. What must be the same: the case and all that the protocol says of counting, interpreter,
packages and harness, the machine as the document describes it, the names of the checkout's files, and the
content of each file that was read. In doubt is counted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import __version__, metrics
from ..counting.read_files import digest_environment, hash_file
from ..measurement import CountedCommit, MeasurementRequest

Raw = dict[str, Any]

SIZE_LIMIT = 16 * 2**20
TREE_LIMIT = 100_000
NOT_RUN = (".md", ".rst")  # added or removed, they change nothing, unless they are read
# Of a benchmark what has no part in its counting.
NOT_COUNTED = frozenset(
    {
        *("name", "version", "cases", "params", "quick", "warmup_steps", "steps", "repetitions", "precision"),
        *("time_limit", "headline", "guard", "learning_seeds", "scaling", "limits", "job"),
    }
)
# It isn't exact, and a copy of it would pass for a second measurement.
PHASE_MEMORY = "phase_memory"


def read_counted_before(path: Path) -> CountedCommit | None:
    """The earlier commit and its document; None where there is no such file, or none that can be used."""
    try:
        with path.open("rb") as file:
            raw = json.loads(file.read(SIZE_LIMIT))
        counting = raw["document"]["counting"]
        usable = isinstance(raw["commit"], str) and isinstance(counting["files"], dict)
        return CountedCommit(raw["commit"], raw["document"]) if usable and not counting["doubts"] else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class CountingKey:
    """What two countings must have in common beside the files that they read.

    `tree` is a digest of the checkout's file names, taken before anything ran in it.
    """

    tree: str

    def digest(
        self,
        request: MeasurementRequest,
        environment: Mapping[str, Any],
        driver: str | None,
        warmup_steps: int,
    ) -> str:
        """The key; empty where the checkout has too many files to be listed.

        `warmup_steps` are those of the counting, which may be more than the benchmark asks for.
        """
        if not self.tree:
            return ""
        benchmark = {
            name: value for name, value in asdict(request.benchmark).items() if name not in NOT_COUNTED
        }
        parts = {
            "harness": __version__,
            "benchmark": benchmark,
            "name": [request.benchmark.name, request.benchmark.version, request.case.key],
            "params": dict(request.case.params),
            "warmup_steps": warmup_steps,
            "arguments": request.arguments,
            "environment": {**environment, "driver": driver},
            "packages": digest_environment(),
            "named": _digest_named_files(request),
            "tree": self.tree,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _digest_named_files(request: MeasurementRequest) -> dict[str, str]:
    """The files of the checkout that a parameter or a variable names: a library may read them unseen."""
    named = [*request.case.params.values(), *request.benchmark.variables.values()]
    texts = sorted({value for value in named if isinstance(value, str) and value and "\0" not in value})
    return {text: hash_file(request.folder / text) for text in texts if _is_file(request.folder / text)}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A long text is no path.
        return False


def digest_tree(folder: Path) -> str:
    """A digest of the names of all files, environments aside; empty for more than TREE_LIMIT of them."""
    digest, count = hashlib.sha256(), 0
    for top, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            # A virtual environment: what is installed in it, the packages' records say.
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
        count += len(files)
        if count > TREE_LIMIT:
            return ""
        for name in sorted(files):
            if not name.endswith(NOT_RUN) and name != ".git":
                digest.update(os.fsencode(f"{os.path.relpath(top, folder)}/{name}\0"))
    return digest.hexdigest()


def has_same_inputs(before: CountedCommit, key: str, folder: Path) -> bool:
    """Whether this checkout would be counted as that one was."""
    counting = before.document["counting"]
    if not key or counting.get("key") != key:
        return False
    try:
        return all(hash_file(folder / name) == digest for name, digest in counting["files"].items())
    except OSError:
        return False


def has_reusable_counters(before: CountedCommit, benchmark_metrics: Sequence[str]) -> bool:
    """Whether its counters are known to repeat: two countings gave the same, in one run or in two."""
    if any(name.partition(":")[0] == PHASE_MEMORY for name in benchmark_metrics):
        return False
    rows = counting_rows(before.document["metrics"])
    exact = bool(rows) and all(row["exact"] for row in rows)
    return exact or bool(before.document["counting"].get("repeats"))


def counting_rows(rows: Sequence[Mapping[str, Any]]) -> list[Raw]:
    """The metrics that counting processes gave, but for memory."""
    return [
        {name: value for name, value in row.items() if name != "headline"}
        for row in rows
        if row["name"] in metrics.METRICS and row["kind"] == "counter"
    ]


def counters_repeat(before: CountedCommit, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a counting of the same inputs gave what the one before gave."""

    def read_samples(found: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str | None], list[float]]:
        return {(row["name"], row["phase"]): sorted(set(row["samples"])) for row in counting_rows(found)}

    now, then = read_samples(rows), read_samples(before.document["metrics"])
    return bool(now) and now == then and all(len(samples) == 1 for samples in now.values())


def mark_counts(rows: Sequence[Raw], before: CountedCommit) -> list[Raw]:
    """The timed metrics; what the code counts itself is exact where it was, and is as large as it was."""
    exact = {
        row["name"]: row["samples"] for row in before.document["metrics"] if row["exact"] and not row["phase"]
    }
    return [
        {**row, "exact": len({*row["samples"], *exact[row["name"]]}) == 1}
        if row["name"].startswith("count.") and row["name"] in exact
        else row
        for row in rows
    ]
