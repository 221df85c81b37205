"""The reaper of one process tree: starts it, collects its orphans, and leaves nothing of it running.

It stands as a process of its own between a worker and what the worker starts. The worker runs this file by
its path, with `-I -S` and a pipe as standard input; the end of that pipe, be it closed or be the worker
killed, ends the tree. As the reaper of its subtree it also finds grandchildren that changed their session.
Standard library only, and no polling: on the machine that is measured it sleeps. Every command of a worker
waits for its start, which `json`, `pathlib` and `contextlib` would make longer by half.

    reaper.py GRACE LOCK LIMITS COMMAND [ARGUMENT]...
    reaper.py 3.0 7 "RLIMIT_CORE=0 RLIMIT_DATA=1000000" python train.py

GRACE is in seconds; LOCK, a file's number, and LIMITS may be empty words.

Exit status: the command's, or 128 + N where signal N ended it; 127 where it could not be started.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# A child that ends with its parent (a data loader) has this long before it counts as left behind.
LEFTOVER_SECONDS = 0.5
UNKILLABLE_SECONDS = 30.0


def set_process_option(option: int, value: int) -> None:
    """Call prctl; OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that happens; at once if it has."""
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def lower_limits(limits: dict[str, int]) -> None:
    """Set soft and hard limits by name; a limit above the hard one that we have stays at that one."""
    for name, limit in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (value, value))


def list_descendants(root: int) -> list[int]:
    """The process ids below `root`, from one walk over /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(parent_process(name), []).append(int(name))
    below = list(children.get(root, []))
    for process in below:
        below.extend(children.get(process, []))
    return below


def parent_process(process: str) -> int:
    """The parent's process id; -1 where the process has gone."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The command's name stands in parentheses and may hold anything, parentheses too.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return -1


def write_notice(text: str) -> None:
    """A line into the log; the worker that read it may be gone."""
    try:
        os.write(1, f"[paceline] {text}\n".encode())
    except OSError:
        pass


class ProcessReaper:
    """The tree, by its root; `status` is the root's exit status once it has ended."""

    def __init__(self, command: list[str]) -> None:
        self.status: int | None = None
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        # Only this process holds the writing end: the tree sees its end when the reaper is killed.
        stdin, self.watchdog = os.pipe()
        reaper = os.getpid()
        self.root = os.fork()
        if self.root == 0:
            become_command(command, stdin, reaper)
        os.close(stdin)

    def reap(self) -> bool:
        """Collect what has ended; True where anything is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if process == 0:
                return True
            if process == self.root:
                self.status = os.waitstatus_to_exitcode(status)

    def sleep(self, until: float | None = None, *, watch_worker: bool = False) -> bool:
        """Until a child ends, the time comes, or the worker's pipe ends; True for the pipe."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if watch_worker:
            poll.register(0, select.POLLIN)
        left = None if until is None else max(0.0, until - time.monotonic()) * 1000
        events = dict(poll.poll(left))
        if self.wake in events:
            os.read(self.wake, 4096)
        return 0 in events and not os.read(0, 4096)

    def wait(self) -> bool:
        """Until the root ends, or the worker wants an end: True where it ended by itself."""
        while self.status is None:
            self.reap()
            if self.status is None and self.sleep(watch_worker=True):
                return False
        return True

    def gone_within(self, seconds: float) -> bool:
        """Whether the whole tree has ended by then."""
        until = time.monotonic() + seconds
        while self.reap():
            if time.monotonic() >= until:
                return False
            self.sleep(until)
        return True

    def signal_all(self, number: int) -> int:
        """Send to every process of the tree; how many there were."""
        processes = list_descendants(os.getpid())
        for process in processes:
            try:
                os.kill(process, number)
            except (ProcessLookupError, PermissionError):
                # One that is gone, or that another account runs: it must not keep the others alive.
                pass
        return len(processes)

    def kill(self) -> None:
        """Round after round, since a process may be forking while it is looked for."""
        until = time.monotonic() + UNKILLABLE_SECONDS
        while self.signal_all(signal.SIGKILL) and not self.gone_within(0.02):
            if time.monotonic() > until:
                write_notice("some of the processes can't be killed")
                return


def become_command(command: list[str], stdin: int, reaper: int) -> None:
    """In the forked child: become the command, in a session of its own."""
    try:
        # Ignored signals stay so through exec: Python ignores the first two, a pool's worker the third.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        die_with_parent(reaper)
        end_first_without_memory()
        os.dup2(stdin, 0)
        os.execv(command[0], command)  # noqa: S606 - a list of arguments, and no shell
    except OSError as error:
        write_notice(f"{command[0]} could not be started: {error.strerror}")
    finally:
        os._exit(127)


def end_first_without_memory() -> None:
    """Where memory runs out, the kernel shall end what is measured, not the database beside it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def main() -> int:
    grace, lock, limits, *command = sys.argv[1:]
    if lock:
        # The reaper keeps the machine locked until the tree is gone, also after its worker was killed;
        # the tree itself must not, or a forgotten process could keep it for ever.
        os.set_inheritable(int(lock), False)
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    named = (word.partition("=") for word in limits.split())
    lower_limits({name: int(limit) for name, _, limit in named})
    reaper = ProcessReaper(command)
    if reaper.wait():
        if not reaper.gone_within(LEFTOVER_SECONDS):
            write_notice("the processes that were left behind are ended")
    else:
        reaper.signal_all(signal.SIGTERM)
        reaper.gone_within(float(grace))
    reaper.kill()
    status = reaper.status if reaper.status is not None else -signal.SIGKILL
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
