"""The code of a commit, ready to be measured: its folder, its benchmark, its environment's Python."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from paceline.manifest import FILE_NAME, Benchmark, Manifest, ManifestError, parse_manifest

from dashboard.repositories import Git
from workers.host import checkout
from workers.host.box import NO_BOX, Box
from workers.host.environments import Environments
from workers.host.errors import CheckoutError
from workers.host.logs import Log
from workers.host.site_client import SiteClient


@dataclass(frozen=True)
class CommitCode:
    """A commit that is checked out; `manifest` is parsed."""

    commit: str
    folder: Path
    manifest: Manifest
    benchmark: Benchmark

    def python(self, home: Path, log: Log, stop: threading.Event, box: Box = NO_BOX) -> Path:
        """The interpreter of the commit's environment, built if need be; BuildError says why not."""
        environment = self.manifest.environment
        files = environment.requirements if environment else ()
        return Environments(home, log, stop, box=box).python(self.folder, files)


@dataclass(frozen=True)
class CodeSource:
    """Where a project's code comes from. `manifest` is the site's own, None where each commit has one."""

    site: SiteClient
    project: str
    manifest: str | None
    benchmark: str

    def code(
        self, commit: str, home: Path, machine: str, stop: threading.Event, folder_suffix: str = ""
    ) -> CommitCode:
        """Check a commit out, CheckoutError says why not. Folders of other suffixes exist beside it."""
        checkouts = checkout.Checkouts(home, machine, Git(stop))
        folder = checkouts.prepare(self.site, self.project, commit, folder_suffix)
        try:
            parsed = parse_manifest(checkout.place_manifest(folder, self.manifest), FILE_NAME)
        except ManifestError as error:
            raise CheckoutError(f"The manifest of {commit[:10]} can't be used: {error}.") from error
        benchmark = parsed.benchmarks.get(self.benchmark)
        if benchmark is None:
            raise CheckoutError(f"The manifest of {commit[:10]} has no benchmark {self.benchmark}.")
        if not benchmark.module:
            checkout.find_inside(folder, benchmark.script, "The script")
        return CommitCode(commit, folder, parsed, benchmark)
