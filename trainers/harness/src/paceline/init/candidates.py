"""Which files of a repository may be its training script: found by their signs, ranked, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from .packages import console_scripts, missing_modules
from .readme import CommandLine
from .repository import Repository
from .script_facts import BACKWARD, ENVIRONMENT, FRAMEWORKS, OPTIMIZER, TRAINER, ScriptFacts

# What a sign in the file itself is worth, and in a file that it imports.
SIGN_POINTS = {BACKWARD: 3.0, TRAINER: 3.0, OPTIMIZER: 2.0, ENVIRONMENT: 1.0}
IMPORTED_SHARE = 0.5
NAME_POINTS = (
    (
        re.compile(
            r"(test|eval|sample|enjoy|play|infer|predict|generate|export|convert|plot|bench|demo|setup|prepare"
            r"|download|preprocess|serve|tune|sweep)\w*\.py|\w+_(test|eval|plot|utils|bench)\.py"
        ),
        -5.0,
    ),
    (re.compile(r"(__main__|train|pretrain)\.py"), 4.0),
    (re.compile(r"(train|pretrain|finetune|fine_tune|run_train|run_ppo)\w*\.py|\w+_train\.py"), 3.0),
    (re.compile(r"(main|run|ppo|dqn)\w*\.py"), 2.0),
)
# Folders of what isn't the project's own training.
ASIDE = frozenset(
    {
        "test",
        "tests",
        "docs",
        "doc",
        "benchmark",
        "benchmarks",
        "scripts",
        "tools",
        "legacy",
        "utils",
        "distributed",
    }
)
RANKS_POINTS, MISSING_POINTS, ASIDE_POINTS, FOLDER_POINTS = -2.0, -4.0, -3.0, -0.5
COMMAND_POINTS, FIRST_COMMAND_POINTS = 2.0, 3.0
LEAST_POINTS = 3.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be trained with: `reasons` are signs and a README's commands; `missing` are modules."""

    path: str
    module: str  # where it has to be, or is asked to be, started by -m
    points: float
    reasons: tuple[str, ...]
    missing: tuple[str, ...]
    python_path: tuple[str, ...]
    commands: tuple[CommandLine, ...]
    facts: ScriptFacts
    variables: Mapping[str, str]
    processes: int = 1  # ranks that it needs to start
    working_directory: str = ""  # where it is started; empty for the repository's root

    @property
    def folder(self) -> str:
        parent = str(PurePosixPath(self.path).parent)
        return "" if parent == "." else parent

    @property
    def name(self) -> str:
        """A name for its benchmark: of files that are called train or main also their folder's."""
        path = PurePosixPath(self.path)
        stem = path.parent.name if path.stem == "__main__" else path.stem
        parent = path.parent.name
        plain = stem in ("train", "main", "run") and parent and path.parent.as_posix() != "src"
        text = f"{parent}-{stem}" if plain and path.stem != "__main__" else stem
        return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip("._-")[:100] or "train"


def find_candidates(repository: Repository, commands: Sequence[CommandLine]) -> list[Candidate]:
    """The candidates, the likeliest first."""
    by_script: dict[str, list[CommandLine]] = {}
    for command in commands:
        by_script.setdefault(command.script, []).append(command)
    rated = (
        rate_candidate(repository, path, by_script.get(path, ()), commands)
        for path, facts in repository.files.items()
        if facts.is_program
    )
    return sorted(
        (candidate for candidate in rated if candidate.points >= LEAST_POINTS),
        key=lambda candidate: (
            -candidate.points - MISSING_POINTS * bool(candidate.missing) + len(candidate.missing) / 2,
            candidate.path.count("/"),
            candidate.path,
        ),
    )


def rate_candidate(
    repository: Repository, path: str, start_commands: Sequence[CommandLine], commands: Sequence[CommandLine]
) -> Candidate:
    """One file as a candidate, whatever its points are."""
    facts = repository.files[path]
    module = _start_module(repository, path, start_commands)
    loaded = load_closure(repository, path, module)
    external = {name for names in loaded.externals.values() for name in names}
    imported = {sign for other in loaded.files if other != path for sign in repository.files[other].signs}
    frameworks = sorted({name.split(".")[0] for name in external} & FRAMEWORKS)
    missing = missing_modules(external)
    points = sum(SIGN_POINTS[sign] for sign in facts.signs)
    points += IMPORTED_SHARE * sum(SIGN_POINTS[sign] for sign in imported - facts.signs)
    if not frameworks or not facts.signs | imported:
        points = -100.0
    file_name = PurePosixPath(path).name
    points += next((worth for pattern, worth in NAME_POINTS if pattern.fullmatch(file_name)), 0.0)
    points += FOLDER_POINTS * path.count("/") + ASIDE_POINTS * bool(ASIDE & set(path.split("/")[:-1]))
    points += RANKS_POINTS * facts.joins_ranks * (not facts.has_guard and "train" not in file_name)
    if start_commands:
        first = next((line.script for line in commands if line.source == start_commands[0].source), "")
        points += FIRST_COMMAND_POINTS if first == path else COMMAND_POINTS
    dotted = ".".join([*_package_parts(repository, path), PurePosixPath(path).stem])
    command = console_scripts(repository.folder).get(dotted)
    points += COMMAND_POINTS * (command is not None)
    reasons = (
        *(f"imports {name}" for name in frameworks),
        *sorted(facts.signs or imported),
        *([f"started in {start_commands[0].source}"] if start_commands else ()),
        *([f"installed as the command {command}"] if command else ()),
    )
    # Its services need an account, and a network that a measured process may not have.
    variables = {"WANDB_MODE": "disabled"} if "wandb" in external else {}
    return Candidate(
        path,
        module,
        points,
        reasons,
        missing,
        loaded.python_path,
        tuple(start_commands),
        facts,
        variables,
        working_directory=start_commands[0].folder if start_commands and not module else "",
    )


@dataclass(slots=True)
class LoadedFiles:
    """What loading a script loads of the repository, and which other modules each of these files imports."""

    files: list[str]
    externals: Mapping[str, tuple[str, ...]]
    python_path: tuple[str, ...]  # folders, beside the script's own, from which modules were found


def load_closure(repository: Repository, path: str, module: str) -> LoadedFiles:
    """Follow a script's imports within the repository; as a module it is started from the root."""
    parent = str(PurePosixPath(path).parent)
    folder = "" if module or parent == "." else parent
    start = repository.find_module(module, "") if module else None
    files, externals, roots = [path], {}, {start[1]} if start else set[str]()
    for current in files:
        outside = []
        for name in _absolute_imports(repository, current):
            found = repository.find_module(name, folder)
            if found is None:
                outside.append(name)
                continue
            files += [file for file in found[0] if file not in files]
            roots.add(found[1])
        externals[current] = tuple(outside)
    return LoadedFiles(files, externals, tuple(sorted((root or ".") for root in roots - {folder})))


def _absolute_imports(repository: Repository, path: str) -> Iterator[str]:
    """The dotted names that a file imports, relative ones from the root of its package."""
    package = _package_parts(repository, path)
    for name in repository.files[path].imports:
        if not name.startswith("."):
            yield name
            continue
        rest = name.lstrip(".")
        base = package[: len(package) - (len(name) - len(rest) - 1)]
        yield ".".join([*base, *([rest] if rest else [])])


def _package_parts(repository: Repository, path: str) -> list[str]:
    """The package that a file lies in, from the highest folder that is one."""
    parts: list[str] = []
    for parent in PurePosixPath(path).parents:
        if f"{parent}/__init__.py" not in repository.files:
            break
        parts.insert(0, parent.name)
    return parts


def _start_module(repository: Repository, path: str, start_commands: Sequence[CommandLine]) -> str:
    """The name by which `python -m` starts it, where a command does so or nothing else would."""
    if start_commands and start_commands[0].module:
        return start_commands[0].module
    is_main = PurePosixPath(path).name == "__main__.py"
    if not is_main and not repository.files[path].is_relative:
        return ""
    names = [*_package_parts(repository, path), *([] if is_main else [PurePosixPath(path).stem])]
    return ".".join(names)
