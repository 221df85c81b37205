"""One measured process: started in its own session, watched, and ended with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import paceline

from ..measured import ending
from ..measured.plan import EMPTY_PROGRESS, ProcessPlan
from ..measured.rank_presence import describe_hang, read_presence
from ..measured.rank_results import rank_result_paths
from ..units import format_count, format_duration
from . import process_tree
from .measurement_errors import MeasurementError
from .process_outcome import read_outcome, shell_status, steps_needed
from .process_usage import cheap_descendant_pids, process_usage
from .signal_forwarding import forward_signals
from .step_watch import StepWatch

OUTPUT_LIMIT = 64 * 2**20
CHILD = Path(paceline.__file__).absolute().with_name("measured") / "child.py"
# How often it is looked whether children have ended, and how long their parent does nothing before it is
# ended itself; with more than this share of a processor it does something.
LOOK_SECONDS, ENDED_CHILDREN_SECONDS, BUSY = 0.5, 3.0, 0.05
# How long a launcher may take to end its ranks.
LAUNCHER_SECONDS = 5.0
TAIL_LINES = 20
TAIL_BYTES = 8_192


class MeasuredProcess:
    """A running measured process. Use it as a context manager: leaving it ends the whole tree."""

    def __init__(self, plan: ProcessPlan, folder: Path, environment: Mapping[str, str]) -> None:
        self.plan = replace(
            plan,
            result=str(folder / "result.json"),
            progress=str(folder / "progress"),
            package=str(Path(paceline.__file__).resolve().parent),
            parent=os.getpid(),
        )
        self._folder = folder
        self.output = folder / "output"
        (folder / "progress").write_bytes(EMPTY_PROGRESS)
        plan_file = folder / "plan.json"
        self.plan.save(plan_file)
        self.started = perf_counter()
        self._watch = StepWatch(self.started)
        self._window_over: float | None = None
        self._looked = self._idle_since = self.started
        self._used = 0.0
        with self.output.open("wb") as output:
            # A training of somebody's own reads and writes what it would without us.
            streams = (None, None, None) if plan.keep_running else (subprocess.DEVNULL, output, output)
            self._process = subprocess.Popen(
                _start_command(plan, str(plan_file)),
                cwd=Path(plan.folder, plan.working_directory),
                env=dict(environment),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._pidfd = _open_pidfd(self.pid)
        self._leaving = contextlib.ExitStack()
        if plan.keep_running:
            self._leaving.enter_context(forward_signals(self.pid))

    def __enter__(self) -> MeasuredProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._may_go_on(kind):
            self._process.wait()
        if self._process.returncode is None or not self.plan.keep_running:
            self._end_processes()
        self._process.wait()
        self._leaving.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _end_processes(self) -> None:
        """End all that is left of it."""
        if self.launched_ranks:
            if self._process.returncode is None:
                # A scheduler's launcher ends what it has started on this host and on others, and gives its
                # allocation back; where it is killed, all that stays.
                self._process.terminate()
                self._wait_for_end(LAUNCHER_SECONDS)
            process_tree.kill_ranks(self.launched_ranks)
        if self._process.returncode is None:
            process_tree.kill_tree(self.pid)
        else:
            # What it started may outlive it; as long as such a process lives, the group's id is not reused.
            process_tree.kill_orphans(self.pid)

    @property
    def launched_ranks(self) -> Path | None:
        """Return the folder in which ranks of another's launcher say where they stand; None without one."""
        return self._folder if self.plan.launcher else None

    def _may_go_on(self, kind: type[BaseException]) -> bool:
        """Whether a failure of ours leaves the script alone; who asks us to end asks it as well."""
        return self.plan.keep_running and issubclass(kind, Exception)

    @property
    def status(self) -> int:
        """The exit status of the ended process, as a shell has it."""
        return shell_status(self._process.returncode)

    def wait(self, seconds: float) -> bool:
        """Wait at most that long; return whether the process has ended.

        One is ended that still waits for its children, which were ended when all was measured.
        """
        deadline = perf_counter() + seconds
        while not self._wait_for_end(min(LOOK_SECONDS, deadline - perf_counter())):
            if self._has_lost_children():
                process_tree.kill_tree(self.pid)
                self._process.wait()
                return True
            if perf_counter() >= deadline:
                return False
        return True

    def _has_lost_children(self) -> bool:
        """Whether nothing of it works any more, and all measured steps were taken in ended children."""
        now = perf_counter()
        if self.plan.keep_running or now - self._looked < LOOK_SECONDS:
            return False
        files = rank_result_paths(Path(self.plan.result))
        used = self._processor_seconds() if files else 0.0
        # What a child took goes with it: a smaller sum is something done as well.
        if not files or abs(used - self._used) > BUSY * (now - self._looked):
            self._idle_since = now
        self._looked, self._used = now, used
        if now - self._idle_since < ENDED_CHILDREN_SECONDS or self.steps_done():
            return False
        results = [json.loads(file.read_text()) for file in files]
        all_ended = all(left["is_child"] and left["ended"] for left in results)
        return all_ended and max(left["world_size"] for left in results) <= len(files)

    def _processor_seconds(self) -> float:
        """What the process and its living descendants have taken."""
        used = map(process_usage, (self.pid, *cheap_descendant_pids(self.pid)))
        return sum(usage.cpu for usage in used if usage)

    def _wait_for_end(self, seconds: float) -> bool:
        if self._pidfd is not None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            poll.poll(max(0.0, seconds) * 1000)
            return self._process.poll() is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=max(0.0, seconds))
        return self._process.returncode is not None

    def progress_fraction(self) -> float:
        """Return how far the repetition is, 0 to 1; the start counts as a fifth."""
        done = self.steps_done()
        return 0.2 + 0.8 * min(1.0, done / steps_needed(self.plan)) if done else 0.1

    def is_past_half(self) -> bool:
        """Return whether more than half of a timed repetition's window is done."""
        return self.steps_done() > self.plan.warmup_steps + self.plan.steps / 2

    def seconds_past_window(self) -> float:
        """Return how long ago all steps of a timed repetition were first seen done; 0 before that."""
        now = perf_counter()
        if self._window_over is None and self.steps_done() >= steps_needed(self.plan):
            self._window_over = now
        return 0.0 if self._window_over is None else now - self._window_over

    def steps_done(self) -> int:
        """Return how many steps the process has taken; of a timed window they are counted now and then."""
        done = int(struct.unpack("q", Path(self.plan.progress).read_bytes()[:8])[0])
        self._watch.note(done, perf_counter())
        return done

    def check_output(self) -> None:
        """Refuse a benchmark that floods its output; raises MeasurementError."""
        if not self.plan.keep_running and self.output.stat().st_size > OUTPUT_LIMIT:
            raise MeasurementError(
                f"{self.plan.script} wrote more than {OUTPUT_LIMIT // 2**20} MiB of output", self.tail()
            )

    def describe_hang(self) -> str:
        """Say which ranks wait in a collective and which never came, or nothing where none waits."""
        return describe_hang(read_presence(self._folder))

    def describe_lateness(self) -> str:
        """Say how far it is and what to do: of ranks that wait, of steps that stay away, or of slow ones."""
        # Nobody follows the steps of a whole loop.
        done = 0 if self.plan.kind == "whole" else self.steps_done()
        now = perf_counter()
        # While steps come each rank is behind another one for a moment.
        hang = "" if self._watch.still_steps(now) else self.describe_hang()
        stalled = self._watch.has_stalled(now)
        silence = format_duration(now - self._watch.quiet_since)
        needed = steps_needed(self.plan)
        seen = f"at least {format_count(done, 'step')} of {needed:,} seen, the last {silence} ago"
        if hang:
            advice = f"{hang}; look whether all ranks take the same collectives"
        elif stalled:
            advice = "that is long after those before, look at what it has done since"
        else:
            advice = "raise it or measure fewer steps"
        return f"{seen}: {advice}" if done else advice

    def tail(self) -> str:
        """Return the last lines that the process wrote."""
        kept = self._folder / ending.ERROR
        with (kept if kept.exists() else self.output).open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
            return "\n".join(output.read().decode(errors="replace").splitlines()[-TAIL_LINES:])

    def outcome(self) -> dict[str, Any]:
        """Return what the ended process left; raises MeasurementError where it isn't whole."""
        return read_outcome(self.plan, self._process.returncode, self.tail())


def _start_command(plan: ProcessPlan, plan_file: str) -> list[str]:
    """Return the command that starts the process: the script's own, or what starts its ranks."""
    if plan.launcher and plan.keep_running:
        return plan.launcher_command(plan_file)
    if plan.launcher:
        return [sys.executable, "-P", "-m", "paceline.measured.launcher_process", plan_file]
    if plan.processes > 1:
        ranks = ["paceline.measured.rank_launcher", str(plan.processes)]
        return [sys.executable, "-P", "-m", *ranks, plan_file]
    return [sys.executable, str(CHILD), plan_file]


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that can be read once the process ends; None where the system has none.

    Python's own wait with a time limit wakes up again and again, beside the process that is measured.
    """
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return None
