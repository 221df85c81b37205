"""The environment variables that a manifest sets, and those that are the protocol's to set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .toml_table import TomlTable

VARIABLES_LIMIT = 40
# Where PyTorch and its libraries look for their number of threads.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# Variables that the protocol sets, and the key of the manifest for each of them.
KEY_OF_VARIABLE = {
    **dict.fromkeys(THREAD_VARIABLES, "threads"),
    "PYTHONHASHSEED": "seed",
    "PACELINE_SEED": "seed",
    "PACELINE_GC": "gc",
}
FORBIDDEN_VARIABLES = ("PYTHONUNBUFFERED", "PACELINE_KEPT_FILES")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def parse_variables(table: TomlTable | None) -> Mapping[str, str]:
    """Read the manifest's table `variables`; raises ManifestError."""
    if table is None:
        return {}
    names = table.names()
    if len(names) > VARIABLES_LIMIT:
        raise table.error("", f"has {len(names)} names, at most {VARIABLES_LIMIT} are allowed")
    return {name: _parse_variable(table, name) for name in names}


def _parse_variable(table: TomlTable, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise table.error(name, "must be named with letters, digits and underscore")
    if name in KEY_OF_VARIABLE:
        raise table.error(name, f"is set by the protocol, use {KEY_OF_VARIABLE[name]} instead")
    if name == "PYTHONPATH":
        raise table.error(name, "is set by the protocol, name the folders in python_path of [environment]")
    if name in FORBIDDEN_VARIABLES:
        raise table.error(name, "is set by the protocol and can't be changed")
    text = table.text(name)
    if len(text) > 2000 or "\0" in text:
        raise table.error(name, "must have at most 2000 characters and no null")
    return text
