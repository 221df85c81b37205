"""Runs the commands that build an environment or make its data: in the box, into the run's log.

In a box a command writes into its step's own folder and, where there is one, into a copy of the checkout that
stands in the checkout's place. pip is told by options how packages are reached.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.host.box.box import NO_BOX, Box, BoxView
from workers.host.environments import pip_options
from workers.host.errors import BuildError, Stopped
from workers.host.logs import Log
from workers.host.processes import process_tree

BUILD_SECONDS = 3600
PASSED_ON = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "CUDA_HOME", "LD_LIBRARY_PATH"),
)
# A step's own home and temporary files, on disk: the wheels of GPU libraries are large.
BUILD_FOLDER = "build"
MOST_FILES = 2_000_000
# No build sees git's history: what packages that ask it for their version get in its place. One value for all
# commits, also where a checkout without a box would tell more.
WITHOUT_HISTORY = {
    "SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0",
    "PBR_VERSION": "0.0.0",
    "PDM_BUILD_SCM_VERSION": "0.0.0",
    "POETRY_DYNAMIC_VERSIONING_BYPASS": "0.0.0",
}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHELL = "/bin/sh"
# A line of pip's about a conflict: who requires what.
DEPENDENCY = re.compile(r"(The user requested|\S+ \S+ depends on) ")
# What pip puts around the words of a build that failed.
PIPS_FRAME = (
    "note: ",
    "hint: ",
    "[end of output]",
    "[notice] ",
    "error: ",
    "ERROR: Failed building ",
    "\N{MULTIPLICATION SIGN}",
    "│",
    "╰",
)


@dataclass(frozen=True)
class BuildStep:
    """Where commands run, and what they see beside the system.

    `folder` takes what they write; `copy` is the folder that the box shows in the place of `checkout`, None
    where they may only read it. `programs` stand first on the path. `network` None is what the host allows.
    """

    folder: Path
    checkout: Path
    copy: Path | None = None
    seen: Sequence[Path] = ()
    programs: Sequence[Path] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    network: bool | None = None
    # For sentences: what isn't there where a command fails, and what should have been done.
    subject: str = "environment"
    made: str = "built"


@dataclass(frozen=True)
class BuildRunner:
    """Runs commands for one job. `host_variables` are the worker's own variables."""

    home: Path
    log: Log
    stop: threading.Event = field(default_factory=threading.Event)
    host_variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    box: Box = NO_BOX

    def make_folders(self, step: BuildStep) -> None:
        """Make the step's home and temporary folder, writable for its commands."""
        for name in ("home", "tmp"):
            (step.folder / BUILD_FOLDER / name).mkdir(parents=True)
            self.box.hand_over(step.folder / BUILD_FOLDER / name)
        self.box.let_read(step.checkout, renewed=True)

    def make_environment(self, step: BuildStep) -> None:
        """Make an environment of the worker's interpreter in the step's folder, with nothing but pip."""
        # Its text: in a box the file itself isn't there.
        program = Path(__file__).with_name("new_environment.py").read_text()
        self.execute([sys.executable, "-I", "-c", program, str(step.folder)], step)

    def run_shell(self, command: str, step: BuildStep) -> None:
        """Run a command of the manifest; BuildError has its last line, Stopped: the run is no longer ours."""
        self.log.add_notice(command)
        self.execute([SHELL, "-c", command], step, shown=f"{command!r}")

    def run_pip(self, python: Path, words: Sequence[str], step: BuildStep) -> None:
        """Run pip's command `install` by an interpreter that has pip."""
        options = pip_options.index_options(self.host_variables) if self.box.encloses else ()
        isolated = ["--isolated"] if self.box.encloses else []
        command = [str(python), "-I", "-m", "pip", *isolated, "--no-input", "install"]
        self.execute([*command, "--progress-bar", "off", *options, *words], step)

    def execute(self, command: Sequence[str], step: BuildStep, shown: str = "") -> None:
        """Run one command; BuildError has its last line, Stopped: the run is no longer ours."""
        printed, subject, made = Log(), step.subject, step.made
        environment = self.build_environment(step)
        folder = step.checkout if self.box.encloses else step.copy or step.checkout
        with self.box.wrap_command(command, step.checkout, self.view(step), environment) as boxed:
            spec = process_tree.ProcessSpec(
                boxed.command, folder, environment, BUILD_SECONDS, folder_limit=self.limit(step)
            )
            result = process_tree.run_process_tree(spec, tee_output(printed.write, self.log.write), self.stop)
            out_of_memory = boxed.group.out_of_memory()
        if result.stopped:
            raise Stopped
        if result.timed_out:
            raise BuildError(f"The {subject} was not {made} within {BUILD_SECONDS} s.")
        if result.exceeded:
            raise BuildError(f"The {subject} takes more disk than a build may use.")
        if result.status != 0 and out_of_memory:
            raise BuildError(f"The {subject}'s build needed more memory than it may use.")
        if result.status != 0:
            raise BuildError(
                f"The {subject} can't be {made}: {failure_reason(printed, shown, result.status)}"
            )

    def view(self, step: BuildStep) -> BoxView:
        """What a command sees: the checkout, packages that lie on this machine, and its own folder."""
        allowed = self.box.sandbox.network != "none"
        if step.network and self.box.encloses and not allowed:
            raise BuildError(
                f"The {step.subject} needs the network, which this host gives to no build "
                "(PACELINE_SANDBOX_NETWORK=none)."
            )
        shown = [] if step.copy else [step.checkout]
        return BoxView(
            read_only=[*shown, *step.seen, *pip_options.local_sources(self.host_variables)],
            writable=[step.folder],
            placed={step.checkout: step.copy} if step.copy else {},
            network=allowed and step.network is not False,
            ports=pip_options.index_ports(self.host_variables),
        )

    def limit(self, step: BuildStep) -> process_tree.FolderLimit | None:
        """The space of a build in a box."""
        if not self.box.encloses:
            return None
        others = (step.copy,) if step.copy else ()
        return process_tree.FolderLimit(step.folder, self.box.sandbox.build_disk, MOST_FILES, others)

    def build_environment(self, step: BuildStep) -> dict[str, str]:
        """The variables of a step's commands."""
        path = ":".join([*map(str, step.programs), PATH])
        if not self.box.encloses:
            return {**self.pip_environment(), **step.variables, "PATH": path}
        passed_on = {name: value for name, value in self.host_variables.items() if name in PASSED_ON}
        pip_options.refuse_credentials(passed_on)
        own = step.folder / BUILD_FOLDER
        return {
            "HOME": str(own / "home"),
            "TMPDIR": str(own / "tmp"),
            "LANG": "C.UTF-8",
            **passed_on,
            **step.variables,
            "PATH": path,
        }

    def pip_environment(self) -> dict[str, str]:
        """All that pip and the builds it starts see of this process: how packages are reached."""
        cache = self.home / "environments" / "home"
        cache.mkdir(parents=True, exist_ok=True)
        passed_on = {
            name: value
            for name, value in self.host_variables.items()
            if name in PASSED_ON or name.startswith("PIP_")
        }
        return {"PATH": PATH, "HOME": str(cache), "LANG": "C.UTF-8", **passed_on}


def tee_output(first: Callable[[bytes], None], second: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        first(data)
        second(data)

    return write


def failure_reason(printed: Log, shown: str, status: int) -> str:
    """The last line of what was printed, without pip's word, behind the command where that is shown."""
    lines = [line for line in printed.last_lines() if not line.startswith(PIPS_FRAME)]
    line = pip_conflict(lines) or "".join(lines[-1:]).removeprefix("ERROR: ")
    if shown:
        return f"{shown} ended with exit status {status}{f': {line}' if line else '.'}"
    return line or "pip gave no reason"


def pip_conflict(lines: Sequence[str]) -> str:
    """What requires versions that can't be installed together, where that is why pip ended; else nothing."""
    if not lines or not lines[-1].startswith("ERROR: ResolutionImpossible"):
        return ""
    required = [re.sub(r" \(from .*", "", line) for line in lines if DEPENDENCY.match(line)]
    return f"{'; '.join(dict.fromkeys(required))}: no version fits all of them" if required else ""
