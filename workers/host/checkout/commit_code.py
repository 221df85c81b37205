"""The code of a commit, checked out: its folder, its manifest and its benchmark."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.manifest import FILE_NAME, Benchmark, Manifest, ManifestError, parse_manifest

from dashboard.host_protocol import files_version
from dashboard.repositories import Git
from workers.host.checkout import worktree
from workers.host.errors import CheckoutError
from workers.host.site_api.client import SiteClient


@dataclass(frozen=True)
class CommitCode:
    """A commit that is checked out; `manifest` is parsed.

    `tree` names all that lies in the folder; `kept_files` is the version of what the site has put there;
    `project` is the one that the site names. `on_branch`: a branch of it holds the commit; what the code of
    another one has made isn't shared.
    """

    commit: str
    folder: Path
    manifest: Manifest
    benchmark: Benchmark
    tree: str = ""
    kept_files: str = ""
    project: str = ""
    on_branch: bool = True


@dataclass(frozen=True)
class CodeSource:
    """Where a project's code comes from. `manifest` is the site's own, None where each commit has one.

    `files` are those that the site keeps beside its manifest, by their paths.
    """

    site: SiteClient
    project: str
    manifest: str | None
    benchmark: str
    files: Mapping[str, str] = field(default_factory=dict)
    on_branch: bool = True

    def code(
        self, commit: str, home: Path, machine: str, stop: threading.Event, folder_suffix: str = ""
    ) -> CommitCode:
        """Check a commit out, CheckoutError says why not. Folders of other suffixes exist beside it."""
        checkouts = worktree.Checkouts(home, machine, Git(stop))
        folder = checkouts.prepare(self.site, self.project, commit, folder_suffix)
        worktree.place_files(folder, self.files)
        try:
            parsed = parse_manifest(worktree.place_manifest(folder, self.manifest), FILE_NAME)
        except ManifestError as error:
            raise CheckoutError(f"The manifest of {commit[:10]} can't be used: {error}.") from error
        benchmark = parsed.benchmarks.get(self.benchmark)
        if benchmark is None:
            raise CheckoutError(f"The manifest of {commit[:10]} has no benchmark {self.benchmark}.")
        if not benchmark.module:
            worktree.find_inside(folder, benchmark.script, "The script")
        version = files_version(self.files)
        tree = f"{checkouts.tree(self.project, commit)} {version}"
        return CommitCode(commit, folder, parsed, benchmark, tree, version, self.project, self.on_branch)
