"""The command line of a measured script: the manifest's own words, then the case's parameters as options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .toml_table import Scalar, TomlTable

if TYPE_CHECKING:
    from .benchmarks import Benchmark

WORDS_LIMIT = 200
WORD_LIMIT = 2_000
_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")


def parse_arguments(table: TomlTable) -> tuple[str, ...]:
    """Read the key `arguments`; raises ManifestError."""
    words = table.strings("arguments") or []
    if len(words) > WORDS_LIMIT or any(len(word) > WORD_LIMIT or "\0" in word for word in words):
        raise table.error(
            "arguments", f"must be at most {WORDS_LIMIT} words of at most {WORD_LIMIT} characters"
        )
    return tuple(words)


def check_placeholders(benchmark: Benchmark, table: TomlTable) -> None:
    """Refuse a placeholder for which a case has no parameter; raises ManifestError."""
    for name in sorted(_placeholder_names(benchmark.arguments)):
        for case in benchmark.cases:
            if name not in case.params:
                of_case = f" of the case {case.key}" if case.key else ""
                raise table.error("arguments", f"has {{{name}}}, which is no parameter{of_case}")


def format_arguments(params: Mapping[str, Scalar], words: Sequence[str] = ()) -> list[str]:
    """Spell a command line: the words, `{name}` in them filled in, then the other parameters as options.

    These are spelt `--batch-size 64`, `--fused`, `--no-fused`; in a word a parameter is spelt as Python does.
    """
    filled = [_PLACEHOLDER.sub(lambda found: _fill_placeholder(found, params), word) for word in words]
    for name, value in params.items():
        if name in _placeholder_names(words):
            continue
        option = name.replace("_", "-")
        if isinstance(value, bool):
            filled.append(f"--{option}" if value else f"--no-{option}")
        else:
            filled += [f"--{option}", str(value)]
    return filled


def _fill_placeholder(found: re.Match[str], params: Mapping[str, Scalar]) -> str:
    return str(params[found[1]]) if found[1] in params else found[0]


def _placeholder_names(words: Sequence[str]) -> set[str]:
    return {name for word in words for name in _PLACEHOLDER.findall(word)}
