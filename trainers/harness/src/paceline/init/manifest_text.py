"""The text of a manifest that `init` writes, with the reasons beside its keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from ..manifest.script_arguments import format_arguments
from ..manifest.toml_table import ManifestError, Scalar, check_scalar
from .candidates import Candidate
from .packages import EnvironmentGuess
from .preparation_guess import format_preparation
from .window import Window

HEAD = "# Written by `paceline init` from what it saw here. Raise `version` when you change the work."
LONGEST_LINE = 100


def write_manifest(
    candidate: Candidate,
    words: Sequence[str],
    window: Window,
    environment: EnvironmentGuess,
    preparation: Sequence[str],
    notes: Mapping[str, str],
) -> str:
    """Return the manifest; `notes` are comments by the key that they stand beside."""
    lines = [HEAD, *_environment_lines(environment), "", f"[benchmarks.{_format_key(candidate.name)}]"]
    params = find_params(words)
    keys: dict[str, object] = {
        "version": 1,
        "module" if candidate.module else "script": candidate.module or candidate.path,
        "working_directory": candidate.working_directory,
        "processes": candidate.processes,
        "auto": True,
        "arguments": [] if params is not None else list(words),
        "params": params or {},
        "prepare": [format_preparation(preparation, candidate.working_directory)] if preparation else [],
        "variables": dict(candidate.variables),
        "warmup_steps": window.warmup_steps,
        "steps": window.steps,
        "counting_steps": window.counting_steps,
        "repetitions": window.repetitions,
        "time_limit": window.time_limit,
    }
    for key, value in keys.items():
        if value not in ([], {}, "") and (key, value) != ("processes", 1):
            lines.append(_format_line(key, value, notes.get(key, "")))
    return "\n".join(lines) + "\n"


def find_params(words: Sequence[str]) -> dict[str, Scalar] | None:
    """The arguments as parameters, so that cases can differ in them; None where they aren't spelt so."""
    params: dict[str, Scalar] = {}
    place = 0
    while place < len(words):
        word = words[place]
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or not name.isidentifier():
            return None
        has_value = place + 1 < len(words) and not words[place + 1].startswith("--")
        try:
            params[name] = _read_scalar(words[place + 1]) if has_value else not word.startswith("--no-")
        except ManifestError:
            return None
        if not has_value and word.startswith("--no-"):
            params[name.removeprefix("no_")] = params.pop(name)
        place += 1 + has_value
    return params if format_arguments(params) == list(words) else None


def _read_scalar(word: str) -> Scalar:
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        return value if str(value) == word else check_scalar(word, ManifestError())
    return check_scalar(word, ManifestError())


def _environment_lines(environment: EnvironmentGuess) -> Iterable[str]:
    tables = {
        "requirements": list(environment.requirements),
        "lock": environment.lock,
        "install": list(environment.install),
        "python_path": list(environment.python_path),
    }
    lines = [_format_line(key, value, "") for key, value in tables.items() if value]
    if lines:
        yield from ("", *(f"# {conflict}." for conflict in environment.conflicts), "[environment]", *lines)


def _format_line(key: str, value: object, note: str) -> str:
    text = f"{key} = {_format_value(value)}"
    return (
        f"# {note}\n{text}"
        if note and len(text) + len(note) > LONGEST_LINE
        else f"{text}  # {note}"
        if note
        else text
    )


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{_format_key(name)} = {_format_value(item)}" for name, item in value.items())
            + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    # JSON's strings, numbers and booleans are TOML's, but for a character that both forbid.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
