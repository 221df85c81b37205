"""What is counted of one thread in one phase."""

from __future__ import annotations

from collections import defaultdict


class Tally:
    """Counts of one thread in one phase; operations as [number, own seconds] by name."""

    def __init__(self) -> None:
        self.operations: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self.copies = 0
        self.copied_bytes = 0
        self.scalar_reads = 0
        self.synchronisations = 0
        self.tensors = 0
        self.allocated_bytes = 0
        self.optimizer_steps = 0
        self.unused_gradient_operations = 0
        self.flops: defaultdict[str, int] = defaultdict(int)
        self.uncounted: set[str] = set()

    @property
    def model_flops(self) -> int:
        """The floating-point operations of all types."""
        return sum(self.flops.values())
