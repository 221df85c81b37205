"""git that can't ask, can't hang, can't be talked into options, and sees nothing of its environment."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.repositories.child import Output, run_child
from dashboard.repositories.errors import GitError, GitTimeout, RepositoryError

TIME_LIMIT = 60.0
MOST_BYTES = 256 * 1024 * 1024
# What git needs to reach a repository: helpers, ssh, proxies, certificates. Never GIT_DIR and its like, which
# a hook or an outer git sets: they would point our commands at another repository.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME", "KRB5CCNAME"),
    *("SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
# By these git finds what the account may read: its configuration, credential helpers, .netrc, keys, tickets.
ACCOUNT = (
    *("HOME", "XDG_CONFIG_HOME", "KRB5CCNAME", "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
)
PROTECTIONS = {
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "true",
    # Neither `ext::`, which runs a command, nor helpers that somebody installed.
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "LC_ALL": "C.UTF-8",
}
# Nothing of a repository runs, nothing goes on in the background, and what is printed has one form.
OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"),
    *("-c", "maintenance.auto=false", "-c", "gc.autoDetach=false"),
    *("-c", "advice.detachedHead=false", "-c", "color.ui=false"),
)
# And nobody who answers leads git to another place.
WITHOUT_REDIRECTS = (*OPTIONS, "-c", "http.followRedirects=false")
# Follows the reason where a remote can't be read; with ssh, the reason has no `fatal:` before it.
ADVICE = (
    "fatal: Could not read from remote",
    "Please make sure you have the correct",
    "and the repository exists",
)


@dataclass(frozen=True)
class Git:
    """git for one purpose: once `stop` is set, what runs is ended."""

    stop: threading.Event = field(default_factory=threading.Event)
    # Not shown: an environment holds secrets.
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    options: Sequence[str] = OPTIONS

    def run(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        time_limit: float = TIME_LIMIT,
    ) -> bytes:
        """The standard output of `git ARGUMENTS` in `folder`.

        `variables` are added to its environment. RepositoryError with git's own reason, Stopped on the stop.
        """
        printed = bytearray()

        def collect(data: bytes) -> None:
            printed.extend(data)
            if len(printed) > MOST_BYTES:
                raise RepositoryError(
                    f"git {_subcommand_name(arguments)} printed more than {MOST_BYTES} bytes."
                )

        self.stream(
            arguments, folder=folder, variables=variables, stdin=stdin, time_limit=time_limit, output=collect
        )
        return bytes(printed)

    def stream(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        output: Output,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        time_limit: float = TIME_LIMIT,
    ) -> None:
        """As `run`, but `output` gets what git prints as it comes."""
        try:
            ended = run_child(
                ["git", *self.options, *arguments],
                folder=folder,
                environment={**self.environment(), **(variables or {})},
                stdin=stdin,
                output=output,
                time_limit=time_limit,
                stop=self.stop,
            )
        except TimeoutError:
            raise GitTimeout(
                f"git {_subcommand_name(arguments)} took longer than {time_limit:g} seconds."
            ) from None
        except OSError as error:
            raise RepositoryError(f"git can't be started in {folder}: {error.strerror}.") from error
        if ended.status:
            reason = failure_reason(ended.complaint.decode("utf-8", "replace"))
            raise GitError(f"git {_subcommand_name(arguments)} failed: {reason}.", ended.status)

    def environment(self) -> dict[str, str]:
        """All that git sees of this process."""
        passed_on = {name: self.variables[name] for name in PASSED_ON if name in self.variables}
        return {**passed_on, **PROTECTIONS}


def git_without_account() -> Git:
    """git that reads what a stranger may read, at the very address that it is given: another one could be
    where the account is known."""
    return Git(variables=environment_without_account(), options=WITHOUT_REDIRECTS)


def environment_without_account() -> dict[str, str]:
    """This process' variables, with which git reads what a stranger may read.

    A home is named, since curl looks for .netrc in the one that the system knows where none is, and so is a
    place of tickets. The machine's configuration may hold helpers and headers as well.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ACCOUNT}
    return {**kept, "HOME": "/dev/null", "KRB5CCNAME": "FILE:/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def protocol_variables(address: str) -> dict[str, str]:
    """From an https address git follows no redirect to http: who answers there could lead it to services of
    this network that ask nobody who they are. The address as git calls it: where the account's `insteadOf`
    leads is its own affair."""
    return {"GIT_ALLOW_PROTOCOL": "file:git:https:ssh"} if address.lower().startswith("https://") else {}


def _subcommand_name(arguments: Sequence[str]) -> str:
    """The word that says what git does, which `-c name=value` may stand before."""
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def failure_reason(complaint: str) -> str:
    """The first line that says why, without the word before it, its full stop and passwords."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip() and not line.startswith(ADVICE)]
    reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
    line = (reasons or lines[-1:] or ["it gave no reason"])[0]
    # Hidden before it is cut: the end of a password's address must still be there.
    return hide_password(line.removeprefix("fatal: ").removeprefix("error: "))[:500].rstrip(".")


def hide_password(text: str) -> str:
    """Without the user and password of each address, also where git leaves out its `git://`."""
    # The last `@` before the path ends them.
    return re.sub(r"(?:(?<=//)[^/\s]*|[^/\s:@'\"]+:[^/\s]*)@", "", text)
