"""Makes .venv with everything that Paceline needs; what `make` runs first.

Run by path with the system's Python, before anything is installed: standard library only. An environment
that is complete and up to date costs some milliseconds: a stamp keeps the hash of the files it was made from.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

EVERYTHING = "site,host,torch,emulator,service,frameworks,embedded,dev"
INPUTS = ("constraints.txt", "pyproject.toml", "trainers/harness/pyproject.toml")
# Bytes. The largest part is torch, whose build for GPUs brings its own libraries.
LEAST_FREE = 3_000_000_000


class SetUpError(Exception):
    """One sentence for people."""


def main(root: Path, extras: str = EVERYTHING) -> int:
    # The lock of the folder itself: two calls at the same time would install into each other.
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print_line("Another make is setting up .venv; waiting for it.")
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        set_up(root, extras)
    except (SetUpError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted; the next make goes on with it.\n")
        return 130
    finally:
        os.close(folder)
    return 0


def set_up(root: Path, extras: str) -> None:
    environment = root / ".venv"
    stamp = environment / "paceline-stamp"
    wanted = hash_inputs(root, extras)
    if is_complete(environment) and stamp.is_file() and stamp.read_text() == wanted:
        return
    check_python()
    check_disk(root)
    if not is_complete(environment):
        make_environment(environment)
    # Without a stamp until it is complete: an interruption is seen by the next call.
    stamp.unlink(missing_ok=True)
    print_line("Installing the dependencies into .venv (about a minute; torch is the largest).")
    install_dependencies(root, environment, extras)
    stamp.write_text(wanted)


def hash_inputs(root: Path, extras: str) -> str:
    """A hash of the files that say what is installed, of the Python, and of the folder (scripts name it)."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {root} {extras}".encode())
    for name in INPUTS:
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def is_complete(environment: Path) -> bool:
    """Whether it has an interpreter that starts (the system's may have gone) and its pip."""
    python = environment / "bin" / "python"
    pip = [*environment.glob("lib/python*/site-packages/pip/__main__.py")]
    return os.access(python, os.X_OK) and (environment / "pyvenv.cfg").is_file() and bool(pip)


def check_python() -> None:
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetUpError(
            f"{sys.executable} can't make virtual environments; on Debian install the package {package} "
            f"(apt install {package}), then run make again."
        )


def check_disk(root: Path) -> None:
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE:
        raise SetUpError(
            f"Only {free // 1_000_000} MB are free for {root}, and the environment needs "
            f"{LEAST_FREE // 1_000_000} MB."
        )


def make_environment(environment: Path) -> None:
    if environment.exists():
        print_line("The environment in .venv is only half made; making it again.")
    else:
        print_line("Making the environment in .venv.")
    command = [sys.executable, "-m", "venv", "--clear", str(environment)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetUpError(f"The environment in .venv can't be made: {last_line(done.stdout + done.stderr)}")


def install_dependencies(root: Path, environment: Path, extras: str) -> None:
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "-c", "constraints.txt"]
    # Not editable: it has no packages, and a finder of none would be imported at each start of Python.
    command += ["-e", "trainers/harness", f".[{extras}]"]
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            show_progress(line)
    show_progress("")
    if process.returncode != 0:
        raise SetUpError(explain_failure(lines))


def explain_failure(lines: list[str]) -> str:
    """The one line of pip's output that says why it failed."""
    text = "\n".join(lines)
    if "No space left on device" in text:
        return "The disk is full: free some space and run make again."
    errors = [line for line in lines if line.startswith("ERROR: ")]
    reason = errors[0].removeprefix("ERROR: ") if errors else last_line(text)
    return f"The dependencies can't be installed into .venv: {reason}"


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def show_progress(line: str) -> None:
    """On a terminal, the one thing that pip is busy with, always in the same line."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K{line.strip()[:75]}")
        sys.stdout.flush()


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent.parent, *sys.argv[1:2]))
