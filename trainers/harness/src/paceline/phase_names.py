"""What a document names beside the phases of the code, in brackets."""

from __future__ import annotations

# What of a step lies in no phase.
UNATTRIBUTED = "(unattributed)"
# What came before the first step.
SETUP = "(setup)"
