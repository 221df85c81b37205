"""The environments that runs were measured under: stored once each, and compared.

Judgement and pages compare them here: what changed between two runs beside the code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dashboard.models import Environment, Run
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# A commit can change these through the environment that its manifest asks for.
SOFTWARE = ("python", "torch", "cuda", "packages")
# No commit changes these.
SYSTEM = ("driver", "os", "kernel", "cpu_model", "gpus", "harness", "kept_files")
# Of these what isn't the machine's alone: the devices that a case uses, and what its project keeps.
OF_CASE = ("gpus", "kept_files")
# What the code chose by itself, and the version of the files that the site keeps beside it.
RARE = ("settings", "kept_files")
LABELS = {"cpu_model": "processor", "gpus": "GPUs", "os": "system", "kept_files": "kept files"}

# The compared values of a run by their names, with the name of its machine; empty where none are known.
EnvironmentValues = Mapping[str, Any]
UNKNOWN: EnvironmentValues = {}


class Difference(NamedTuple):
    """What changed from one run to the next: `torch`, from `2.12.0` to `2.13.0`."""

    label: str
    before: str
    after: str


def compared_values(environment: EnvironmentValues, harness: str | None) -> dict[str, Any]:
    """What is compared of a document's environment, with the version of the harness that measured."""
    # Few have these: without them a run shares the row of those that older harnesses measured.
    rare = {name: environment[name] for name in RARE if environment.get(name)}
    common = {name: environment.get(name) for name in (*SOFTWARE, *SYSTEM) if name not in RARE}
    return {**common, "harness": harness, **rare}


_BY_DIGEST: CompiledQuery[Any] = CompiledQuery(
    lambda: Environment.objects.filter(digest__in_array=Parameter("digests")).values_list("digest", "pk")
)
_VALUES: CompiledQuery[Any] = CompiledQuery(
    lambda: Environment.objects.filter(pk__in_array=Parameter("keys")).values_list("pk", "values")
)
_OF_RUNS: CompiledQuery[Any] = CompiledQuery(
    lambda: Run.objects.filter(pk__in_array=Parameter("runs"), environment__isnull=False).values_list(
        "pk", "environment_id", "machine__name"
    )
)


def store_environments(environments: Iterable[dict[str, Any]]) -> list[int]:
    """The key of the row of each of these compared values, in their order; those that are alike share one."""
    with_digests = [(_digest_values(values), values) for values in environments]
    by_digest = dict(with_digests)
    digests = list(by_digest)
    stored = dict(_BY_DIGEST.read_rows(digests=digests))
    if missing := by_digest.keys() - stored.keys():
        # Another run's may store the same meanwhile.
        Environment.objects.bulk_create(
            (Environment(digest=digest, values=by_digest[digest]) for digest in sorted(missing)),
            ignore_conflicts=True,
        )
        stored = dict(_BY_DIGEST.read_rows(digests=digests))
    return [stored[digest] for digest, _ in with_digests]


def _digest_values(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class RunEnvironments:
    """The environments of runs, each read once; runs of the same one share its values."""

    def __init__(self) -> None:
        self._by_run: dict[int, EnvironmentValues] = {}
        self._stored: dict[int, EnvironmentValues] = {}
        self._on_machine: dict[tuple[int, str | None], EnvironmentValues] = {}

    def of_run(self, run_id: int) -> EnvironmentValues:
        if run_id not in self._by_run:
            self.read_runs([run_id])
        return self._by_run[run_id]

    def read_runs(self, run_ids: Iterable[int]) -> None:
        """Read many at once, in two queries."""
        missing = {run_id for run_id in run_ids if run_id not in self._by_run}
        if not missing:
            return
        rows = _OF_RUNS.read_rows(runs=list(missing))
        unread = {environment for _, environment, _ in rows} - self._stored.keys()
        if unread:
            self._stored |= dict(_VALUES.read_rows(keys=list(unread)))
        # A run without environment isn't asked for again.
        self._by_run |= dict.fromkeys(missing, UNKNOWN)
        for run_id, environment, machine in rows:
            key = (environment, machine)
            if key not in self._on_machine:
                self._on_machine[key] = {**self._stored[environment], "machine": machine}
            self._by_run[run_id] = self._on_machine[key]


def compare_environments(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    """All that changed: first what no commit changes."""
    # Most neighbours share their environment.
    if before is after:
        return []
    return [
        *system_differences(before, after),
        *software_differences(before, after),
        *settings_differences(before, after),
        *machine_differences(before, after),
    ]


def software_differences(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    """What a commit may have changed."""
    compared = (_compare_value(name, before, after) for name in SOFTWARE if name != "packages")
    packages = _compare_members("packages", before, after)
    return [
        *(difference for difference in compared if difference),
        *(difference for difference in packages if difference.label != "torch"),
    ]


def settings_differences(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    """What the measured code chose otherwise. It excuses no commit, which may be why it did."""
    return _compare_members("settings", before, after)


def _compare_members(name: str, before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    old, new = before.get(name) or {}, after.get(name) or {}
    compared = (_compare_value(member, old, new) for member in sorted({*old, *new}))
    return [difference for difference in compared if difference]


def system_differences(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    """What no commit changes. Another machine of the pool isn't among it: a pool's machines are alike."""
    compared = (_compare_value(name, before, after) for name in SYSTEM)
    return [difference for difference in compared if difference]


def shared_system_differences(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    """What changed of a machine itself, by runs of whatever cases."""
    compared = (_compare_value(name, before, after) for name in SYSTEM if name not in OF_CASE)
    return [difference for difference in compared if difference]


def machine_differences(before: EnvironmentValues, after: EnvironmentValues) -> list[Difference]:
    difference = _compare_value("machine", before, after)
    return [difference] if difference else []


def _compare_value(name: str, before: EnvironmentValues, after: EnvironmentValues) -> Difference | None:
    """None where nothing changed; a system's value that isn't known on one side is no difference."""
    old, new = before.get(name), after.get(name)
    unknown = name in SYSTEM and (old is None or new is None)
    if old == new or unknown or not (before and after):
        return None
    old_text, new_text = _format_value(old), _format_value(new)
    if old_text == new_text:
        old_text, new_text = _format_value(old, in_full=True), _format_value(new, in_full=True)
    return Difference(LABELS.get(name, name), old_text, new_text)


def _format_value(value: object, *, in_full: bool = False) -> str:
    if isinstance(value, list):
        return ", ".join(_format_item(item, in_full=in_full) for item in value) or "none"
    return "none" if value is None else str(value)


def _format_item(item: object, *, in_full: bool) -> str:
    """A GPU by its name; in full with its memory, which alone may differ."""
    if not isinstance(item, dict) or "name" not in item:
        return str(item)
    memory = item.get("memory_bytes")
    return f"{item['name']} ({memory / 1e9:.2f} GB)" if in_full and memory else str(item["name"])
