"""What a commit's own package depends on: read where its pyproject.toml says it, else asked of pip."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.manifest.environment_table import InstallTarget, parse_install
from paceline.manifest.toml_text import load_toml

from dashboard.repositories import hold_lock
from workers.host.checkout.working_copy import working_copy
from workers.host.checkout.worktree import read_text_inside
from workers.host.environments.build_runner import BUILD_SECONDS, WITHOUT_HISTORY, BuildRunner, BuildStep
from workers.host.environments.requirements import FILE_ADDRESS, PACKAGES
from workers.host.errors import BuildError, CheckoutError
from workers.host.folders import read_untrusted_file, remove_tree

NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
# A name, and behind it nothing, or what a requirement goes on with.
REQUIREMENT = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:$|[\[(<>=!~;@])")
EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
REPORT = "report.json"
QUESTION = ("--use-pep517", "--dry-run", "--quiet", "--no-deps", "--ignore-installed")
LARGEST_REPORT = 8 * 1024 * 1024


def declared_dependencies(checkout: Path, target: InstallTarget) -> list[str] | None:
    """The requirements that stand in the package's pyproject.toml; None where only its build tells them."""
    name = f"{target.folder}/pyproject.toml"
    if not os.path.isfile(checkout / name):  # noqa: PTH113 - raises nothing where that is too long for a path
        return None
    try:
        project = load_toml(read_text_inside(checkout, name, "The file")).get("project")
        if not isinstance(project, dict) or {"dependencies", "optional-dependencies"} & set(
            text_list(project.get("dynamic", []))
        ):
            return None
        optional = project.get("optional-dependencies", {})
        if not isinstance(optional, dict):
            raise ValueError("optional-dependencies isn't a table")
        extras = {normal_name(extra): text_list(rows) for extra, rows in optional.items()}
        found = text_list(project.get("dependencies", []))
        for extra in target.extras:
            found += expand_extra(normal_name(extra), extras, str(project.get("name", "")))
    except (CheckoutError, ValueError, RecursionError) as error:
        raise BuildError(f"{name} can't be read: {error}") from error
    return check_dependencies(name, found)


def text_list(value: object) -> list[str]:
    """ValueError where it isn't a list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("what must be a list of texts is none")
    return list(value)


def expand_extra(
    extra: str, optional: Mapping[str, Sequence[str]], name: str, seen: set[str] | None = None
) -> Iterator[str]:
    """The requirements of an extra, and of those that it names of the same package; of each extra once."""
    # Once: each naming two others that name the same two, they would be expanded without end.
    seen = set() if seen is None else seen
    seen.add(extra)
    for row in optional.get(extra, ()):
        matched = NAME.match(row)
        if matched and matched[2] and normal_name(matched[1]) == normal_name(name):
            for other in map(normal_name, matched[2].split(",")):
                if other not in seen:
                    yield from expand_extra(other, optional, name, seen)
        else:
            yield row


def normal_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def ask_pip(
    checkout: Path, word: str, python: Path, folders: Sequence[Path], runner: BuildRunner
) -> list[str]:
    """The requirements that the package's build says it has, by pip of the interpreter."""
    target = parse_install(word)
    isolation = [] if target.is_isolated else ["--no-build-isolation"]
    key = hashlib.sha256(os.fsencode(checkout)).hexdigest()[:10]
    folder = runner.home / "environments" / f"metadata-{key}"
    with hold_lock(folder.with_suffix(".lock"), BUILD_SECONDS, runner.stop):
        remove_tree(folder)
        try:
            runner.make_folders(BuildStep(folder, checkout))
            # pip may leave folders beside the code that it looks at.
            with working_copy(checkout, folder.with_suffix(".checkout"), runner.box) as copy:
                step = BuildStep(folder, checkout, copy.copy, folders, (python.parent,), WITHOUT_HISTORY)
                asked = [*QUESTION, "--report", str(folder / REPORT), *isolation, target.place]
                runner.run_pip(python, asked, step)
            found = read_report(folder / REPORT, target)
        finally:
            remove_tree(folder)
    return check_dependencies(target.folder, found)


def read_report(report: Path, target: InstallTarget) -> list[str]:
    """The requirements in pip's report, with those of the extras."""
    try:
        # A build of the commit may have put anything there.
        (row,) = json.loads(read_untrusted_file(report, LARGEST_REPORT))["install"]
        rows: list[str] = list(row["metadata"].get("requires_dist") or ())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"What {target.folder!r} depends on can't be read: {error}.") from error
    return [chosen for text in rows if (chosen := choose_requirement(str(text), target.extras))]


def choose_requirement(text: str, extras: Sequence[str]) -> str:
    """A requirement without its extra's marker; empty where that extra isn't wanted."""
    matched = EXTRA.search(text)
    if matched is None:
        return text
    if normal_name(matched[1]) not in map(normal_name, extras):
        return ""
    # The marker stays true: what else it says of the interpreter still counts.
    return text.replace(matched[0], "python_version > '0'")


def check_dependencies(name: str, found: Sequence[Any]) -> list[str]:
    """Refuse what is no requirement, or lies in a folder."""
    for row in found:
        if not isinstance(row, str) or "\n" in row or FILE_ADDRESS.search(row) or not is_requirement(row):
            raise BuildError(f"{name} depends on {row!r}, which an environment kept for others can't hold.")
    return [str(row) for row in found]


def is_requirement(row: str) -> bool:
    """Whether pip takes a line for the name of a package: no option, no folder or file of the checkout."""
    is_archive = "@" not in row and row.strip().lower().endswith(PACKAGES)
    return REQUIREMENT.match(row) is not None and not is_archive
