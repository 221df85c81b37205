from __future__ import annotations


class CheckError(Exception):
    """A check can't be asked for or changed so; the message is one sentence that names the field."""
