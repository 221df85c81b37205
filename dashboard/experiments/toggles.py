"""The parameters of a toggle's other side: what `compile=true`, or `compile` alone, makes of a case."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from paceline.manifest import Benchmark, case_key
from paceline.manifest.toml_text import load_toml

from dashboard import repositories
from dashboard.experiments.errors import ExperimentError
from dashboard.models.projects import case_name
from dashboard.repositories import CommitFacts, Mirror, RepositoryError

Params = Mapping[str, Any]

# Beside a benchmark's script: what a document says of it, toggle by toggle.
CLAIMS = "claims.toml"
LONGEST_VALUE = 200
UNWRITABLE = re.compile(r"[,=\x00-\x1f]")


def toggle_params(
    mirror: Mirror, commit: CommitFacts, benchmark: Benchmark, params: Params, written: str
) -> Params:
    """The parameters with those that are written in the place of their own. Raises ExperimentError."""
    changed = dict(params)
    for part in written.split(","):
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not name.isidentifier():
            raise ExperimentError("toggle", f"{part.strip()!r} isn't NAME or NAME=VALUE.")
        refuse_misspelled(benchmark, params, name)
        changed[name] = (
            read_value(name, text) if equals else other_value(mirror, commit, benchmark, params, name)
        )
    if case_key(changed) == case_key(params):
        raise ExperimentError("toggle", f"{case_name(benchmark.name, case_key(params))} is that already.")
    return changed


def refuse_misspelled(benchmark: Benchmark, params: Params, name: str) -> None:
    """Refuse a parameter that no case has where one has nearly that name: nothing would differ."""
    known = {*params, *(key for case in benchmark.cases for key in case.params)}
    near = [] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if near:
        raise ExperimentError(
            "toggle", f"{benchmark.name} has no parameter {name!r}: did you mean {near[0]}?"
        )


def read_value(name: str, text: str) -> object:
    """As `paceline run --set` reads it: JSON, or else text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    word = isinstance(value, str) and len(value) <= LONGEST_VALUE and not UNWRITABLE.search(value)
    if number or (word and value):
        return value
    raise ExperimentError("toggle", f"{name} is {text!r}, and must be a number, true, false or a word.")


def other_value(
    mirror: Mirror, commit: CommitFacts, benchmark: Benchmark, params: Params, name: str
) -> object:
    """The value that a toggle has on its other side; ExperimentError where that can't be known."""
    own = params.get(name)
    if isinstance(own, bool):
        return not own
    found = [value for value in other_cases(benchmark, params, name) if value != own]
    found = found or claimed_values(mirror, commit, benchmark, params, name)
    if len(found) == 1:
        return found[0]
    if found:
        values = ", ".join(f"{name}={json.dumps(value)}" for value in found)
        raise ExperimentError("toggle", f"{name} has several other values, choose one: {values}.")
    raise ExperimentError(
        "toggle",
        f"the manifest doesn't say what else {name} of {case_name(benchmark.name, case_key(params))} may be: "
        f"write {name}=VALUE.",
    )


def other_cases(benchmark: Benchmark, params: Params, name: str) -> list[object]:
    """The values of one parameter in the manifest's cases that are else the same."""
    rest = {key: value for key, value in params.items() if key != name}
    return [
        case.params[name]
        for case in benchmark.cases
        if name in case.params and {key: value for key, value in case.params.items() if key != name} == rest
    ]


def claimed_values(
    mirror: Mirror, commit: CommitFacts, benchmark: Benchmark, params: Params, name: str
) -> list[object]:
    """The value that a claim about this toggle sets beside the same parameters; none without such a claim."""
    path = f"{commit.hash}:{(benchmark.script_folder / CLAIMS).as_posix()}"
    try:
        text = repositories.file_texts(mirror, [path]).get(path, "")
        claims = load_toml(text).get("claims", [])
    except (RepositoryError, ValueError, RecursionError):
        return []
    values: list[object] = []
    for claim in claims if isinstance(claims, list) else []:
        if not isinstance(claim, dict) or claim.get("toggle") != name:
            continue
        sides = [claim.get("before"), claim.get("after")]
        others = [side for side in sides if isinstance(side, dict) and side != dict(params)]
        if dict(params) in sides and len(others) == 1 and name in others[0]:
            values.append(others[0][name])
    return values
