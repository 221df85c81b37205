"""What the protocol fixes around a measured process: variables, threads, seeds, processors, the collector."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .fields import Fields

# What Python's garbage collector does in the measured window: as it always does; nothing; or its ordinary
# work, but never again on what was there before the window.
COLLECTORS = ("default", "disabled", "frozen")
CPU_LIMIT = 4096
VARIABLES_LIMIT = 40

# Where PyTorch and its libraries look for their number of threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# Variables that the protocol sets, and the manifest's key that decides about each of them.
SET_BY = {
    **dict.fromkeys(THREAD_VARIABLES, "threads"),
    "PYTHONHASHSEED": "seed",
    "PACELINE_SEED": "seed",
}
NEVER = ("PYTHONPATH", "PYTHONUNBUFFERED")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def variables(fields: Fields | None) -> Mapping[str, str]:
    """Read the manifest's table `variables`; raises ManifestError."""
    if fields is None:
        return {}
    names = fields.names()
    if len(names) > VARIABLES_LIMIT:
        raise fields.error("", f"has {len(names)} names, at most {VARIABLES_LIMIT} are allowed")
    return {name: _variable(fields, name) for name in names}


def _variable(fields: Fields, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise fields.error(name, "must be named with letters, digits and underscore")
    if name in SET_BY:
        raise fields.error(name, f"is set by the protocol, use {SET_BY[name]} instead")
    if name in NEVER:
        raise fields.error(name, "is set by the protocol and can't be changed")
    text = fields.text(name)
    if len(text) > 2000 or "\0" in text:
        raise fields.error(name, "must have at most 2000 characters and no null")
    return text
