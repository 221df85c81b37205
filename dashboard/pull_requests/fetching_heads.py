"""The head of a pull request in the mirror: from a ref of the repository, or from the fork that has it."""

from __future__ import annotations

import re

from dashboard.forges.bitbucket import WEB_ADDRESS
from dashboard.forges.forge_api import HeadLocation
from dashboard.repositories import Mirror, Unreachable, join_credentials, split_credentials

# https://host/, ssh://git@host/ and git@host:, but no folder of this machine.
REMOTE = re.compile(r"(?:https?|ssh)://|(?:[\w.-]+@)?[\w.-]+:(?!//)")


def fetch_head(
    mirror: Mirror, repository: str, head: HeadLocation, number: int, patience: float | None = None
) -> None:
    """`repository` is the project's, as its forge names it. Raises as `Mirror.fetch` does."""
    if not head.fork:
        mirror.fetch_ref(head.ref, str(number), patience=patience)
        return
    failure = ""
    for address in fork_addresses(mirror.repository, repository, head.fork):
        try:
            mirror.fetch_ref(head.ref, str(number), address, patience)
        except Unreachable as error:
            failure = str(error)
        else:
            return
    raise Unreachable(
        f"The fork {head.fork} can be read neither by everybody nor as the project's repository is: {failure}"
    )


def fork_addresses(address: str, repository: str, fork: str) -> list[str]:
    """Where a fork of Bitbucket may be fetched, the address that needs no secret first.

    The project's own credentials go to its own host alone.
    """
    plain, credentials = split_credentials(address)
    remote = re.fullmatch(rf"(.+[/:]){re.escape(repository)}(?:\.git)?/?", plain, re.IGNORECASE)
    public = f"{WEB_ADDRESS}{fork}.git"
    if remote is None or not REMOTE.match(plain):
        return [public]
    beside = f"{remote[1]}{fork}.git"
    if plain.startswith(("https://", "http://")):
        public = beside
    return list(dict.fromkeys((public, join_credentials(beside, credentials))))
