"""Why a repository can't be reached, read from what git says of it."""

from __future__ import annotations

import re
from enum import StrEnum


class FailureKind(StrEnum):
    """What stands between us and a repository."""

    NO_HOST = "no host"
    NO_ANSWER = "no answer"
    CREDENTIALS = "credentials"
    KEY_REFUSED = "key refused"
    HOST_KEY = "host key"
    CERTIFICATE = "certificate"
    REDIRECTED = "redirected"
    NOT_FOUND = "not found"
    OTHER = "other"


# The first that fits: ssh ends with "could not read from remote" whatever went wrong before.
PATTERNS: tuple[tuple[FailureKind, str], ...] = (
    (FailureKind.NO_HOST, r"could not resolve|name or service not known|unable to look up|strange hostname"),
    (FailureKind.HOST_KEY, r"host key verification failed|host identification has changed"),
    (FailureKind.KEY_REFUSED, r"permission denied \(|too many authentication failures"),
    (FailureKind.CERTIFICATE, r"certificate|gnutls_handshake|ssl_error|ssl routines"),
    (FailureKind.REDIRECTED, r"redirect|returned error: 30[12378]"),
    (
        FailureKind.CREDENTIALS,
        r"authentication failed|could not read (username|password)|access denied|returned error: 40[13]",
    ),
    (
        FailureKind.NOT_FOUND,
        r"not found|does not exist|does not appear to be a git repository|returned error: 404"
        r"|not valid: is this",
    ),
    (
        FailureKind.NO_ANSWER,
        r"connection (refused|timed out|reset|closed)|failed to connect|couldn't connect|took longer than"
        r"|no route to host|network is unreachable|timed out|empty reply|early eof|returned error: 5\d\d",
    ),
)


def classify_failure(reason: str) -> FailureKind:
    """The kind of what git said; OTHER where nothing is known of it."""
    for kind, pattern in PATTERNS:
        if re.search(pattern, reason, re.IGNORECASE):
            return kind
    return FailureKind.OTHER
