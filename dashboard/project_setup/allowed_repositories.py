"""Which repositories may be named in a page: an https or ssh address, and what an administrator allows."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from django.conf import settings

from dashboard.outgoing_http import OutgoingError, resolve_public_address
from dashboard.project_setup.errors import SetupError
from dashboard.projects.repository_location import ProjectError, absolute_address
from dashboard.repositories import OPTIONS, WITHOUT_REDIRECTS, split_credentials

PERMISSION = "PACELINE_ALLOW_INTERNAL_REPOSITORIES"
LONGEST = 2000
LONGEST_CREDENTIALS = 1000
# `ada@host:path`, which no scheme stands before.
SCP_FORM = re.compile(r"(?:\w[\w.-]*@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?!//)(?P<path>[^-:].*)")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9a-fA-F:.]+")
PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}
PLAIN = ("http", "git")
FIELD = "repository"


def read_address(
    written: str,
    user: str,
    password: str,
    *,
    local_allowed: bool,
    key_allowed: bool = True,
    known: str = "",
) -> tuple[str, str]:
    """(address, credentials) of a repository that is typed in a page. Raises SetupError.

    `local_allowed`, `key_allowed`: whether whoever typed it may have the site read folders of its machine,
    and what its own ssh key reads. `known` is the address that the project has already: whoever typed it in
    then was allowed to.
    """
    address = written.strip()
    check_plain_text(address)
    address, embedded = split_credentials(address)
    if known and address == known:
        scheme = urlsplit(address).scheme
    elif is_local(address):
        address, scheme = check_local(address, allowed=local_allowed), "file"
    else:
        scheme = check_remote(address, local_allowed=local_allowed)
        # Else an admin of one project could name the repository of another, that the key reads as well.
        if scheme == "ssh" and not key_allowed:
            raise SetupError(
                "Over ssh the site's own key is used, which may read repositories of other projects: such an "
                "address is named by whoever may add projects. Give one that begins with https://, with a "
                "user and a token.",
                FIELD,
            )
    return address, read_credentials(scheme, user, password, embedded)


def check_plain_text(address: str) -> None:
    if not address:
        raise SetupError(
            "Give the repository's address, such as https://git.example.org/team/code.git.", FIELD
        )
    if len(address) > LONGEST:
        raise SetupError(f"An address has at most {LONGEST} characters.", FIELD)
    if address.startswith("-") or not address.isprintable() or (" " in address and not is_local(address)):
        raise SetupError("That holds characters which no address of a repository has.", FIELD)


def is_local(address: str) -> bool:
    return address.startswith(("/", "~", ".", "file:"))


def check_local(address: str, *, allowed: bool) -> str:
    """The absolute path of a folder on the site's machine."""
    if not allowed:
        raise SetupError(
            "A folder of the site's own machine can be named by administrators of the site alone: give an "
            "address that begins with https:// or ssh://.",
            FIELD,
        )
    if address.startswith("file:"):
        if not address.startswith("file:///"):
            raise SetupError("A file: address names a folder by its whole path: file:///path.", FIELD)
        return address
    try:
        return absolute_address(address)
    except ProjectError as error:
        raise SetupError(str(error), FIELD) from error


def check_remote(address: str, *, local_allowed: bool) -> str:
    """The scheme of an address that leads to another machine."""
    others = ", or is a folder of the site's machine such as /srv/code" if local_allowed else ""
    forms = f"it begins with https:// or ssh://, or is written git@host:path{others}."
    if "://" not in address:
        if SCP_FORM.fullmatch(address):
            return "ssh"
        raise SetupError(f"That is no address of a repository: {forms}", FIELD)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise SetupError("The port of that address is no number from 1 to 65535.", FIELD) from None
    if parts.scheme not in PORTS:
        raise SetupError(f"That is no address of a repository: {forms}", FIELD)
    if parts.scheme in PLAIN and not getattr(settings, PERMISSION):
        raise SetupError(
            f"{parts.scheme}:// is not encrypted: use https:// or ssh://. {PERMISSION} allows it.", FIELD
        )
    if port == 0 or not HOST.fullmatch(parts.hostname or "") or (parts.username or "").startswith("-"):
        raise SetupError("The host of that address can't be one.", FIELD)
    if not parts.path.strip("/") or parts.query or parts.fragment:
        raise SetupError("After the host, the address names the repository's path and nothing else.", FIELD)
    return parts.scheme


def read_credentials(scheme: str, user: str, password: str, embedded: str) -> str:
    """`USER:PASSWORD`, quoted as an address holds it; what stands in the fields comes before the address'."""
    user = user.strip()
    if max(len(user), len(password), len(embedded)) > LONGEST_CREDENTIALS:
        raise SetupError(f"A user or password has at most {LONGEST_CREDENTIALS} characters.", "password")
    if not user and not password:
        return embedded
    if scheme not in ("http", "https"):
        raise SetupError(
            "Only https addresses take a user and a password: of ssh, the site's own key is used.", "user"
        )
    if not user:
        raise SetupError(
            "Give the user too; where the password is a token, any word will do for most.", "user"
        )
    if not (user + password).isprintable():
        raise SetupError("The user or the password holds a character that can't be typed.", "password")
    return f"{quote(user, safe='')}:{quote(password, safe='')}"


def remote_host(address: str) -> tuple[str, int] | None:
    """(host, port) that git connects to; None for a folder of this machine."""
    if is_local(address):
        return None
    if "://" not in address:
        found = SCP_FORM.fullmatch(address)
        return (found["host"], PORTS["ssh"]) if found else None
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)


def guarded_options(address: str) -> tuple[str, ...]:
    """git's options for an address that somebody typed: it asks the host that was looked at, and no other.

    Raises InternalAddressError where the host is an internal one and none is allowed, OutgoingError where it
    has no address.
    """
    host = remote_host(address)
    if host is None or getattr(settings, PERMISSION):
        return OPTIONS
    found = resolve_public_address(*host, PERMISSION)
    if not found:
        raise OutgoingError(f"{host[0]} has no address.")
    shown = f"[{found}]" if ":" in found else found
    pinned = f"http.curloptResolve={host[0]}:{host[1]}:{shown}"
    return (*WITHOUT_REDIRECTS, "-c", pinned)
