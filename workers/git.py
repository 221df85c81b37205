"""git as a worker runs it: with a time limit, without questions, and without anything of its surroundings."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workers import processes
from workers.errors import CheckoutError, Stopped

# What git needs to reach a repository: credentials' helpers, ssh, proxies. Never GIT_DIR and its like.
PASSED_ON = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "XDG_CONFIG_HOME",
        "SSH_AUTH_SOCK",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
    ),
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "GIT_SSL_CAINFO", "SSL_CERT_FILE"),
)
# A repository may belong to somebody else. `-c safe.directory` would not reach the process that serves a
# local fetch, so it stands in a file that takes the place of the user's own and includes that one.
GLOBAL_CONFIGURATION = """\
[include]
\tpath = ~/.gitconfig
\tpath = ~/.config/git/config
[safe]
\tdirectory = *
"""
OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"),
    *("-c", "advice.detachedHead=false", "-c", "submodule.recurse=false", "-c", "maintenance.auto=false"),
)
# Follows the reason where a remote can't be read; with ssh, the reason has no `fatal:` before it.
ADVICE = (
    "fatal: Could not read from remote",
    "Please make sure you have the correct",
    "and the repository exists",
)


@dataclass(frozen=True)
class Git:
    """git for one run; what it prints on a failure is the failure's sentence."""

    home: Path
    stop: threading.Event = field(default_factory=threading.Event)
    surroundings: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, *arguments: str, folder: Path, time_limit: float = 120) -> str:
        """What git prints; CheckoutError with its reason, Stopped where the run is no longer ours."""
        printed = bytearray()
        order = processes.Order(
            command=["/usr/bin/env", "git", *OPTIONS, *arguments],
            folder=folder,
            environment=self.environment(),
            time_limit=time_limit,
        )
        ended = processes.run(order, printed.extend, self.stop)
        text = printed.decode(errors="replace").strip()
        if ended.stopped:
            raise Stopped
        if ended.timed_out:
            raise CheckoutError(f"git {arguments[0]} did not end within {time_limit:g} s.")
        if ended.status != 0:
            raise CheckoutError(f"git {arguments[0]} failed: {reason(text)}")
        return text

    def environment(self) -> dict[str, str]:
        """All that git sees of this process."""
        configuration = self.home / "gitconfig"
        if not configuration.exists():
            configuration.parent.mkdir(parents=True, exist_ok=True)
            draft = configuration.with_name(f"gitconfig.{os.getpid()}")
            draft.write_text(GLOBAL_CONFIGURATION)
            draft.rename(configuration)
        passed_on = {name: self.surroundings[name] for name in PASSED_ON if name in self.surroundings}
        return {
            **passed_on,
            "GIT_CONFIG_GLOBAL": str(configuration),
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C.UTF-8",
        }


def reason(text: str) -> str:
    """Of what git printed: the first line that says why, without the word before it and without passwords."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(ADVICE)]
    reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
    line = (reasons or lines[-1:] or ["it gave no reason"])[0]
    # Hidden before it is cut: the end of a password's address must still be there.
    return hide_password(line.removeprefix("fatal: ").removeprefix("error: "))[:500]


def hide_password(text: str) -> str:
    """Without the user and password of each address, also where git leaves out its `git://`."""
    # The last `@` before the path ends them.
    return re.sub(r"(?:(?<=//)[^/\s]*|[^/\s:@'\"]+:[^/\s]*)@", "", text)
