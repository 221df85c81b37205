"""The manifest `paceline.toml`: its benchmarks, environment, limits and policy, one file for each table."""

from .benchmarks import Benchmark, Case, case_key
from .environment_table import Environment
from .manifest_file import (
    FILE_NAME,
    REPETITIONS_LIMIT,
    SEED_LIMIT,
    SIZE_LIMIT,
    STEPS_LIMIT,
    Manifest,
    decode_manifest,
    find_manifest,
    load_manifest,
    parse_manifest,
    read_manifest,
)
from .policy import Policy
from .preparation import Preparation
from .toml_table import ManifestError

__all__ = [
    "FILE_NAME",
    "REPETITIONS_LIMIT",
    "SEED_LIMIT",
    "SIZE_LIMIT",
    "STEPS_LIMIT",
    "Benchmark",
    "Case",
    "Environment",
    "Manifest",
    "ManifestError",
    "Policy",
    "Preparation",
    "case_key",
    "decode_manifest",
    "find_manifest",
    "load_manifest",
    "parse_manifest",
    "read_manifest",
]
