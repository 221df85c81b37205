"""The code of a commit, ready to be measured: its folder, its benchmark, its environment's Python."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from paceline import manifest
from paceline.manifest import Benchmark, Manifest

from dashboard.repositories import Git
from workers import checkout
from workers.environments import Environments
from workers.errors import CheckoutError
from workers.logs import Log


@dataclass(frozen=True)
class Code:
    """A commit that is checked out; `described` is its manifest."""

    commit: str
    folder: Path
    described: Manifest
    benchmark: Benchmark

    def python(self, home: Path, log: Log, stop: threading.Event) -> Path:
        """The interpreter of the commit's environment, built if need be; BuildError says why not."""
        wanted = self.described.environment
        return Environments(home, log, stop).python(self.folder, wanted.requirements if wanted else ())


@dataclass(frozen=True)
class Source:
    """Where a project's code comes from. `manifest` is the site's own, None where each commit has one."""

    project: str
    repository: str
    manifest: str | None
    benchmark: str

    def code(self, commit: str, home: Path, machine: str, stop: threading.Event, beside: str = "") -> Code:
        """Check a commit out, CheckoutError says why not. Folders of another `beside` exist beside it."""
        checkouts = checkout.Checkouts(home, machine, Git(stop))
        folder = checkouts.prepare(self.project, self.repository, commit, beside)
        try:
            described = manifest.parse_manifest(
                checkout.place_manifest(folder, self.manifest), manifest.FILE_NAME
            )
        except manifest.ManifestError as error:
            raise CheckoutError(f"The manifest of {commit[:10]} can't be used: {error}.") from error
        benchmark = described.benchmarks.get(self.benchmark)
        if benchmark is None:
            raise CheckoutError(f"The manifest of {commit[:10]} has no benchmark {self.benchmark}.")
        checkout.find_inside(folder, benchmark.script, "The script")
        return Code(commit, folder, described, benchmark)
