"""How much of its disk a host needs to have left, as host and site both know it."""

from __future__ import annotations

# With less a host would fail all that waits, one after the other: it takes no work.
LEAST_FREE_BYTES = 64 * 2**20
