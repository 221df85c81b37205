"""Names of phases that have a meaning: in brackets what no phase of the code covers."""

from __future__ import annotations

# What of a step lies in no phase.
UNATTRIBUTED = "(unattributed)"
# What came before the first step.
SETUP = "(setup)"
# What autograd's own threads do belongs to it, whichever way the code entered it.
BACKWARD = "backward"
# Waiting for a DataLoader, or making a batch of it.
DATA_LOADING = "data_loading"


def spell_metric(name: str, phase: str | None) -> str:
    """Spell a metric as a manifest does: `phase_time:learn`, or the bare name."""
    return f"{name}:{phase}" if phase else name
