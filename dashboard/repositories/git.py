"""git as a subprocess that can't ask, can't hang and can't be talked into options."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dashboard.repositories.errors import RepositoryError

SECONDS = 60
# Set by a hook or an outer git: they would point our commands at another repository.
FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG_PARAMETERS",
)


def environment(config: Path | None = None) -> dict[str, str]:
    """`config` takes the place of the user's own git configuration, which it may include."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return {
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=20",
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        # Neither `ext::`, which runs a command, nor helpers that somebody installed.
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "LC_ALL": "C.UTF-8",
        **({"GIT_CONFIG_GLOBAL": str(config)} if config else {}),
    }


def run(
    folder: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    seconds: float = SECONDS,
    config: Path | None = None,
) -> bytes:
    """The standard output of `git ARGUMENTS` in `folder`. RepositoryError with git's own complaint."""
    try:
        process = subprocess.Popen(
            ["git", *arguments],
            cwd=folder,
            env=environment(config),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A session of its own: what git starts (ssh, helpers) ends with it.
            start_new_session=True,
        )
    except OSError as error:
        raise RepositoryError(f"git can't be started in {folder}: {error.strerror}.") from error
    try:
        out, complaint = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RepositoryError(f"git {command(arguments)} took longer than {seconds:.0f} seconds.") from None
    finally:
        end(process)
    if process.returncode:
        raise RepositoryError(sentence(command(arguments), complaint.decode("utf-8", "replace")))
    return out


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def lines(folder: Path, *arguments: str, stdin: bytes = b"") -> list[str]:
    # Not splitlines(): names and subjects may hold U+2028 and the like, at which that splits too.
    out = run(folder, arguments, stdin=stdin).decode("utf-8", "replace")
    return out.removesuffix("\n").split("\n") if out else []


def command(arguments: Sequence[str]) -> str:
    """The subcommand, which `-c name=value` may stand before."""
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def sentence(command: str, complaint: str) -> str:
    """git's first fatal line, without the password that a URL may carry."""
    found = [line.strip() for line in complaint.splitlines() if line.strip()]
    fatal = [line for line in found if line.startswith(("fatal:", "error:"))]
    said = (fatal or found or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")
    return f"git {command} failed: {hide_password(said).rstrip('.')}."


def hide_password(text: str) -> str:
    """Without the user and password of each address, also where git leaves out its `git://`."""
    # The last `@` before the path ends them.
    return re.sub(r"(?:(?<=//)[^/\s]*|[^/\s:@'\"]+:[^/\s]*)@", "", text)
