"""A history of a standard benchmark: one optimization after the other is switched off, and on again."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..edits import Change, Edit, Tree
from ..repository import Repository, RepositoryError

ROOT = Path(__file__).parents[3]
MANIFEST = "paceline.toml"
NOTES = "NOTES.md"
VARIANT = "optimized"
TAKEN = (
    "headline",
    "warmup_steps",
    "steps",
    "repetitions",
    "counting_steps",
    "counting_warmup_steps",
    "seed",
    "time_limit",
)
"""What the manifest of the history takes over, with the benchmark's quick sizes in place of its own."""

FIRST_LEVEL = 5
LEVEL = 3
"""Measured commits at the start, and between two switches."""

OURS = ("Not in the document", "Planted")
"""How a claim opens that no document makes."""

FILES = (".py", ".asm", ".toml")
SHARED = "benchmark_support"
"""The folder of what all benchmarks use."""


def benchmark_names() -> list[str]:
    """The benchmarks whose claims say what their optimizations are."""
    return sorted(path.parent.name for path in ROOT.glob("trainers/*/claims.toml"))


def create_history(folder: Path, benchmark: str, only: Sequence[str] = ()) -> dict[str, Any]:
    """Make the repository; every commit is measured. RepositoryError names a wrong benchmark or toggle."""
    if benchmark not in benchmark_names():
        raise RepositoryError(f"--benchmark is {benchmark!r}, must be one of {', '.join(benchmark_names())}")
    claims = chosen_claims(benchmark, only)
    tree = first_tree(benchmark)
    repository = Repository(folder)
    commits = [repository.commit(f"Train {benchmark}", tree)]
    planted = []

    def commit(change: Change) -> str:
        nonlocal tree
        tree = change.apply(tree)
        commits.append(repository.commit(change.subject, tree))
        return commits[-1]

    def fill(number: int) -> None:
        for _ in range(number):
            commit(note_change(tree, len(commits)))

    fill(FIRST_LEVEL - 1)
    for claim in claims:
        off = switch_off(tree, claim)
        place = commit(off)
        planted.append(describe_switch(claim, place))
        fill(LEVEL - 1)
        planted[-1]["repaired_by"] = commit(revert_switch(off))
        fill(LEVEL - 1)
    return {"commits": commits, "measured": commits, "planted": planted}


def first_tree(benchmark: str) -> dict[str, str]:
    """The benchmark's own files, with a manifest that knows this one case of it."""
    folders = [ROOT / "trainers" / name for name in (benchmark, SHARED)]
    found = (path for folder in folders for path in folder.rglob("*"))
    files = sorted(path for path in found if path.suffix in FILES and path.name != "claims.toml")
    tree = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    return {**tree, MANIFEST: quick_manifest(benchmark), NOTES: "# What was tried\n"}


def quick_manifest(benchmark: str) -> str:
    """The benchmark in its quick sizes, and without what needs the whole training."""
    entry = tomllib.loads((ROOT / MANIFEST).read_text())["benchmarks"][benchmark]
    entry |= entry.get("quick", {})
    lines = [f"[benchmarks.{benchmark}]", "version = 1", f"script = {json.dumps(entry['script'])}"]
    lines.append(f'params = {{ variant = "{VARIANT}" }}')
    return "\n".join([*lines, *(f"{name} = {entry[name]}" for name in TAKEN if name in entry), ""])


def chosen_claims(benchmark: str, only: Sequence[str]) -> list[dict[str, Any]]:
    """The claims about these toggles in this order, or about all; RepositoryError names a wrong one."""
    claims = {claim["toggle"]: claim for claim in switched_off(benchmark)}
    for toggle in only:
        if toggle not in claims:
            raise RepositoryError(f"--toggle is {toggle!r}, must be one of {', '.join(claims)}")
    return [claims[toggle] for toggle in only or claims]


def switched_off(benchmark: str) -> list[dict[str, Any]]:
    """A document's claims about one toggle, where any machine can test it; each toggle once."""
    text = (ROOT / "trainers" / benchmark / "claims.toml").read_text()
    claims: dict[str, dict[str, Any]] = {}
    for claim in tomllib.loads(text)["claims"]:
        usual = claim.get("after") == {"variant": VARIANT} and not claim.get("needs_cuda")
        usual = usual and not claim["claim"].startswith(OURS)
        if "toggle" in claim and usual and claim["before"]["variant"] == VARIANT:
            claims.setdefault(claim["toggle"], claim)
    return list(claims.values())


def settings_when_off(claim: Mapping[str, Any]) -> dict[str, Any]:
    """What the variant is set to with the optimization off."""
    return {name: value for name, value in claim["before"].items() if name != "variant"}


def switch_off(tree: Tree, claim: Mapping[str, Any]) -> Change:
    """The commit that sets the variant's toggle back, below where the variant is made."""
    values = settings_when_off(claim)
    for path, text in tree.items():
        if path.endswith(".py") and (line := last_line(text)):
            lines = text.splitlines()
            statement = f'VARIANTS["{VARIANT}"] |= {values!r}'
            new = "\n".join([*lines[:line], statement, *lines[line:], ""])
            said = ", ".join(f"{name} {value}" for name, value in values.items())
            return Change(f"Train with {said}", (Edit(path, text, new),))
    raise RepositoryError("no file of the benchmark assigns its variants")


def last_line(text: str) -> int:
    """The last line of the statement that makes the variant, counted from 1; 0 where there is none."""
    found = 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            whole = (
                target == "VARIANTS" and node.value is not None and f"'{VARIANT}':" in ast.unparse(node.value)
            )
            if whole or target == f"VARIANTS['{VARIANT}']":
                found = node.end_lineno or 0
    return found


def revert_switch(change: Change) -> Change:
    """The commit that takes another one back."""
    edits = tuple(Edit(edit.path, edit.new, edit.old) for edit in change.edits)
    return Change(f'Revert "{change.subject}"', edits)


def note_change(tree: Tree, number: int) -> Change:
    """A commit that no run can see."""
    text = tree[NOTES]
    return Change(f"Write down attempt {number}", (Edit(NOTES, text, f"{text}\n- Attempt {number}.\n"),))


def describe_switch(claim: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """A switch as the JSON tells it; how large its effect is, and by which function, only measuring says."""
    return {
        "commit": commit,
        "kind": "toggle",
        "event": f"{claim['toggle']} off",
        "phase": claim.get("phase", ""),
        "claim": claim["claim"],
    }
