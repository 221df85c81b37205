from __future__ import annotations


class ClaimsError(Exception):
    """Claims can't be asked for; the message is one sentence for people, `field` what it is about."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field
