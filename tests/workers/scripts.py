"""What scripts begin with that are measured for real, while other tests run beside them."""

from __future__ import annotations

# No waiting for a processor is seen: a pair with it is set aside and another one measured, on a busy machine
# until the budget is spent. What is set aside, and when, other tests say.
UNDISTURBED = """
from paceline.measured import processor
processor.processor_wait_seconds = lambda: 0.0
"""
