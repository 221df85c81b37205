"""What docs/flow.md says in numbers and names is what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from paceline.document import CODES_OF_DISTURBANCE

from dashboard import dispatch
from dashboard.models import Run, Trigger
from dashboard.runs import logs, remeasuring, resolving, sweeping, transitions
from dashboard.triggers import hook

TEXT = " ".join((Path(__file__).resolve().parents[3] / "docs/flow.md").read_text().split())
DRAWN = TEXT.split("stateDiagram-v2")[2]


@pytest.mark.parametrize(
    "sentence",
    [
        f"first {logs.HEAD // 1024} Ki and the last {logs.TAIL // 1024} Ki characters",
        f"A new commit of a hook, a forge or the poll (priority {resolving.PRIORITY[Trigger.Source.HOOK]})",
        f"tried again for {resolving.TRY_AGAIN_FOR.seconds // 60} minutes",
        f"{remeasuring.DELAYS[0].seconds // 60} minutes later",
        f"{remeasuring.DELAYS[1].seconds // 60} minutes after it",
        f"(priority {remeasuring.PRIORITY})",
        f"received over {sweeping.SEND_AGAIN_AFTER.seconds} s ago",
        f"`PACELINE_LEASE_SECONDS` ({settings.PACELINE_LEASE_SECONDS})",
        f"more than {hook.LARGEST_BODY // 1024} KiB",
        f"`{hook.SIGNATURE}: sha256=<hex>`",
    ],
)
def test_its_numbers_are_the_codes(sentence: str) -> None:
    assert sentence in TEXT


def test_numbers_in_words_are_the_codes() -> None:
    assert (dispatch.EVERY_SECONDS, Run.MOST_ATTEMPTS, hook.WINDOW_SECONDS) == (10, 3, 5 * 60)
    assert "Every ten seconds" in TEXT
    assert "the third time it fails as lost" in TEXT
    assert "five minutes off" in TEXT


def test_every_disturbance_is_named() -> None:
    part = TEXT.partition("## Disturbed runs")[2].partition(" ## ")[0]
    assert [code for code in CODES_OF_DISTURBANCE if f"`{code}`" not in part] == []
    assert len(remeasuring.DELAYS) == 2
    assert "the third is left as it is" in part


def test_every_transition_is_drawn() -> None:
    drawn = [f"{before.value} --> {after.value}" for after, before in transitions.PRECEDING_STATES.items()]
    drawn += [
        f"{state.value} --> {end}" for state in Run.HELD for end in ("failed", "cancelled", "requested")
    ]
    drawn += [f"{state.value} --> requested: start of the site" for state in Run.HELD]
    assert [arrow for arrow in drawn if arrow not in DRAWN] == []


def test_every_failure_is_explained() -> None:
    assert [kind.value for kind in Run.Failure if f"| {kind.value} |" not in TEXT] == []
