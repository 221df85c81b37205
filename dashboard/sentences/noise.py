"""What would make a noisy case worth its time."""

from __future__ import annotations

REMEDIES = {
    "repetitions": "its repetitions differ; more of them, or more steps in each, tell more",
    "runs": "its runs differ more than their repetitions; paceline doctor on the machine says why",
    None: "its runs have one repetition; with three or more it is seen whether they or the machine are noisy",
}


def describe_remedy(source: str | None) -> str:
    return REMEDIES[source] if source in REMEDIES else REMEDIES[None]
