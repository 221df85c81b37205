"""Boxes of both kinds for tests, small enough that whoever breaks out of their limits harms nobody."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from workers.host.box import box
from workers.host.box.box import KINDS, Box, BoxView, Sandbox
from workers.host.execution import launching
from workers.host.processes import process_tree

MIB = 1024**2
SMALL = Sandbox(
    memory=400 * MIB,
    processes=48,
    disk=16 * MIB,
    files=400,
    shared_memory=8 * MIB,
    kept_disk=16 * MIB,
    output=2 * MIB,
)


# Seconds; what is measured here ends long before, on a slow machine too.
TIME_LIMIT = 60.0


@functools.cache
def require_kind(kind: str) -> None:
    """Fail where bubblewrap is missing; skip, with the reason, where the kernel itself allows no box."""
    tried = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"this machine allows no namespaces: {tried.stderr.strip()}")
    if kind == "bubblewrap" and not Path("/usr/bin/bwrap").exists():
        pytest.fail("bubblewrap is not installed, and the set-up may not install it: apt install bubblewrap")


def small_box(kind: str, home: Path, sandbox: Sandbox = SMALL) -> Box:
    """A box of this kind, and of no other."""
    require_kind(kind)
    opened = box.open_box(sandbox, home, (kind,))
    assert opened.kind.startswith(kind)
    return opened


@dataclass(frozen=True)
class BoxedRun:
    """How a command in a box ended, and what it printed."""

    result: process_tree.ProcessResult
    printed: str


@dataclass(frozen=True)
class Cell:
    """A box with a checkout and a scratch folder, as a run has them; `machine` is full of what isn't its."""

    box: Box
    machine: Path
    surroundings: Mapping[str, str] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        return self.machine / "worktrees" / "demo"

    @property
    def scratch(self) -> Path:
        return self.machine / "scratch"

    def prepare(self) -> Cell:
        """Make its folders."""
        for folder in (self.checkout, self.scratch / "home", self.scratch / "tmp"):
            folder.mkdir(parents=True)
        (self.checkout / "train.py").write_text("print('trained')\n")
        (self.checkout / "package").mkdir()
        return self

    def view(self) -> BoxView:
        measurement = launching.Measurement("tiny", {}, 1, True, 60, self.checkout, Path(sys.executable))
        return launching.measurement_view(measurement, self.scratch, self.box)

    def run(
        self,
        code: str,
        grace: float = 0.3,
        view: BoxView | None = None,
        *,
        overdue_once_printed: bool = False,
    ) -> BoxedRun:
        """Run Python code as the root of the box; its time limit may be over as soon as it has printed."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.scratch / "home"),
            "TMPDIR": str(self.scratch / "tmp"),
            **self.surroundings,
        }
        command = [sys.executable, "-I", "-S", "-c", code]
        printed = bytearray()
        output: Callable[[bytes], None] = printed.extend
        with (
            self.box.wrap_command(command, self.checkout, view or self.view(), environment) as boxed,
            pytest.MonkeyPatch.context() as patched,
        ):
            if overdue_once_printed:
                clock = SimpleNamespace(monotonic=lambda: TIME_LIMIT + 1 if printed else 0.0)
                patched.setattr(process_tree, "time", clock)
            kept = process_tree.FolderLimit(self.scratch, self.box.sandbox.kept_disk, 500)
            spec = process_tree.ProcessSpec(
                boxed.command,
                self.checkout,
                environment,
                TIME_LIMIT,
                grace=grace,
                output_limit=self.box.sandbox.output,
                folder_limit=kept,
            )
            result = process_tree.run_process_tree(spec, output, threading.Event())
        return BoxedRun(result, printed.decode(errors="replace"))


__all__ = ["KINDS", "MIB", "SMALL", "BoxedRun", "Cell", "require_kind", "small_box"]
