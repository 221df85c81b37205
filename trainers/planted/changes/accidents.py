"""What else happens to a history: a file that was forgotten, a change taken back, another benchmark."""

from __future__ import annotations

from ..edits import Change, Edit, lines_before

CHECK = '''"""What a batch has to look like."""

from tensors import Batch


def check(batch: Batch) -> None:
    """Refuse a batch whose rows don't belong together."""
    if len(batch.views) != len(batch.actions):
        raise ValueError(f"{len(batch.views)} views come with {len(batch.actions)} actions")
'''

# Only the import was checked in.
BROKEN = Change(
    "Check batches in a file of its own",
    (
        lines_before(
            "train.py", "from environment import ACTIONS, Snake", "from checks import check  # noqa: F401"
        ),
    ),
)
MENDED = Change("Add the file that was forgotten", (Edit("checks.py", "", CHECK),))

# Another workload is another benchmark version: its series starts anew.
REDEFINED = Change(
    "Measure with twice as many transitions",
    (
        Edit("paceline.toml", "\nversion = 1\n", "\nversion = 2\n"),
        Edit("paceline.toml", "batch_size = 32", "batch_size = 64"),
    ),
)


def revert_change(change: Change) -> Change:
    """The commit that takes a change back."""
    undone = (Edit(edit.path, edit.new, edit.old) for edit in reversed(change.edits))
    return Change(f'Revert "{change.subject}"', tuple(undone))
