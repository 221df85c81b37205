"""What an interrupted call has measured already, in a file beside its results, so that the next call goes on.

Sides that are weighed against each other are kept together or not at all: measured hours apart, they would
tell what the machine did in between.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from .. import document
from ..document import Document
from ..manifest.benchmarks import Benchmark
from ..measured.fingerprint import processor_name

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class SideMeasurement:
    """The document of one side of a block, and whether the case was counted too."""

    document: Document
    is_counted: bool


@dataclass(slots=True)
class UnfinishedMeasurements:
    """Blocks of sides that were measured under the same conditions; without a path nothing is kept.

    The file has a line of JSON a block. One that was cut off, or that `conditions` of today wouldn't give
    again, is measured anew.
    """

    path: Path | None = None
    conditions: str = ""
    _blocks: dict[str, dict[str, Any]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read what the file holds."""
        if self.path is not None and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    block = json.loads(line)
                    if block["conditions"] == self.conditions:
                        self._blocks[block["block"]] = block

    def find_block(self, name: str) -> list[SideMeasurement] | None:
        """Return the sides of a block that an interrupted call measured."""
        self._used.add(name)
        kept = self._blocks.get(name)
        if kept is None:
            return None
        return [
            SideMeasurement(document.read_document(json.dumps(side["document"])), side["is_counted"])
            for side in kept["sides"]
        ]

    def keep_block(self, name: str, sides: Sequence[SideMeasurement]) -> None:
        """Write a block to the end of the file."""
        if self.path is not None:
            rows = [{"is_counted": side.is_counted, "document": side.document.raw} for side in sides]
            block = {"conditions": self.conditions, "block": name, "sides": rows}
            with self.path.open("a", encoding="utf-8") as file:
                # A line that an interruption cut off is ended first.
                file.write("\n" + json.dumps(block))

    def forget_used(self) -> None:
        """Remove what this call used, for its results are written; other claims' blocks stay."""
        if self.path is None:
            return
        left = [block for name, block in self._blocks.items() if name not in self._used]
        if left:
            self.path.write_text("\n".join(map(json.dumps, left)), encoding="utf-8")
        else:
            self.path.unlink(missing_ok=True)


def open_unfinished(results: Path, benchmark: Benchmark, folder: Path) -> UnfinishedMeasurements:
    """Read what lies beside the results, as in `claims.results.unfinished.jsonl`."""
    path = results.with_name(f"{results.stem}.unfinished.jsonl")
    return UnfinishedMeasurements(path, _hash_conditions(benchmark, folder))


def _hash_conditions(benchmark: Benchmark, folder: Path) -> str:
    """Hash what a measurement rests on: benchmark, packages, processor, the script's folder, harness."""
    packages = sorted(f"{found.name} {found.version}" for found in distributions())
    digest = hashlib.sha256(repr((benchmark, sys.version, packages, processor_name())).encode())
    for sources in (folder / benchmark.script_folder, PACKAGE):
        for path in sorted(sources.rglob("*.py")):
            digest.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
