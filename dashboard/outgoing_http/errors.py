from __future__ import annotations


class OutgoingError(Exception):
    """A request got no answer; the text is one sentence for people."""


class WrongUrlError(OutgoingError):
    """No request can go to such a URL."""


class InternalAddressError(OutgoingError):
    """The host is an internal one, which no administrator has allowed."""
