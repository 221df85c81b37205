"""What changed around the code between two runs: driver, torch, Python, machine, harness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.models import Document

# A commit can change these through the environment that its manifest asks for.
SOFTWARE = ("python", "torch", "cuda", "packages")
# No commit changes these.
SYSTEM = ("driver", "os", "kernel", "cpu_model", "gpus", "harness")
WORDS = {"cpu_model": "processor", "gpus": "GPUs", "os": "system"}

Environment = Mapping[str, Any]


class Environments:
    """The environments of runs, each read from its document once."""

    def __init__(self) -> None:
        self._known: dict[int, Environment] = {}

    def of(self, run_id: int) -> Environment:
        if run_id not in self._known:
            self.read([run_id])
        return self._known.get(run_id, {})

    def read(self, run_ids: Iterable[int]) -> None:
        """Read many at once: only the environment leaves the database, never a whole document."""
        missing = [run_id for run_id in run_ids if run_id not in self._known]
        if not missing:
            return
        # An imported run has no document, and is not asked for again.
        self._known |= {run_id: {} for run_id in missing}
        rows = Document.objects.filter(run_id__in=missing).values_list(
            "run_id", "run__machine__name", "body__environment", "body__harness__version"
        )
        for run_id, machine, environment, harness in rows:
            self._known[run_id] = {**(environment or {}), "harness": harness, "machine": machine}


def software(before: Environment, after: Environment) -> list[str]:
    """What a commit may have changed, as `torch 2.12.0 -> 2.13.0`."""
    found = [difference(key, before, after) for key in SOFTWARE if key != "packages"]
    old, new = before.get("packages") or {}, after.get("packages") or {}
    found.extend(difference(name, old, new) for name in sorted({*old, *new} - {"torch"}))
    return [text for text in found if text]


def system(before: Environment, after: Environment) -> list[str]:
    """What no commit changes. Another machine of the pool isn't among it: a pool's machines are alike."""
    return [text for key in SYSTEM if (text := difference(key, before, after))]


def machine(before: Environment, after: Environment) -> list[str]:
    return [text for text in [difference("machine", before, after)] if text]


def difference(key: str, before: Environment, after: Environment) -> str:
    """Empty where nothing changed; a value that isn't known on one side is no difference."""
    old, new = before.get(key), after.get(key)
    if old == new or (key in SYSTEM and (old is None or new is None)) or not (before and after):
        return ""
    return f"{WORDS.get(key, key)} {words(old)} -> {words(new)}"


def words(value: object) -> str:
    if isinstance(value, list):
        return (
            ", ".join(str(one.get("name", one) if isinstance(one, dict) else one) for one in value) or "none"
        )
    return "none" if value is None else str(value)
