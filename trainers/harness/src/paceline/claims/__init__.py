"""The claims of a document about a benchmark: read from `claims.toml`, measured in pairs, judged, reported.

A claim compares two cases (`before`, `after`: how many times better the second is) or is about one (`case`).
A claim that can't be measured has a reason (`untestable`), so that no claim of a document is left out.
"""

from .claim import Claim, ClaimResult, Estimate, Evidence
from .claims_file import FILE_NAME, Claims, load_claims, parse_claims

__all__ = [
    "FILE_NAME",
    "Claim",
    "ClaimResult",
    "Claims",
    "Estimate",
    "Evidence",
    "load_claims",
    "parse_claims",
]
