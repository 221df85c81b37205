"""Who imports whom: the imports of every file, read from its syntax, against the arrows of the house."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OURS = ("paceline", "dashboard", "workers", "trainers", "bench", "tests")
STANDARD = frozenset(sys.stdlib_module_names) | {"__future__"}
MEASURED = frozenset({"torch", "psutil", "pynvml"})


@dataclass(frozen=True)
class Room:
    """A folder, and the prefixes of dotted names that its files may import beside its own."""

    folder: str
    package: str
    may: frozenset[str]
    never: frozenset[str] = frozenset()

    def allows(self, name: str) -> bool:
        if has_prefix(name, self.never):
            return False
        return has_prefix(name, {self.package}) or has_prefix(name, self.may)


def has_prefix(name: str, prefixes: frozenset[str] | set[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


SITE = frozenset({"django", "celery", "kombu", "psycopg", "numpy", "orjson", "cryptography", "redis"})

# The first room whose folder holds a file is the file's room: narrow ones stand first.
ROOMS = (
    # Scripts as others write them: the check of a host runs those whose packages are there.
    Room(
        "trainers/harness/src/paceline/doctor/workloads",
        "paceline",
        STANDARD | MEASURED | {"lightning", "transformers"},
    ),
    Room("trainers/harness/src/paceline", "paceline", STANDARD | MEASURED),
    # Scripts whose own folder comes first on their path, and the one that they share behind it.
    Room(
        "trainers",
        "trainers",
        STANDARD | {"paceline", "torch", "numpy", "ale_py", "stable_retro", "uvicorn", "benchmark_support"},
    ),
    Room("dashboard/detection", "dashboard.detection", STANDARD | {"numpy", "scipy"}),
    Room("dashboard/repositories", "dashboard.repositories", STANDARD | {"paceline.manifest"}),
    # What site and host both read: a host has no Django.
    Room("dashboard/host_protocol", "dashboard.host_protocol", STANDARD),
    # Given facts, it answers: no clock, no database, no repository. Of the models it reads codes alone.
    Room(
        "dashboard/regressions/decision",
        "dashboard.regressions.decision",
        frozenset(
            {
                *("__future__", "bisect", "collections", "dataclasses", "enum", "functools", "itertools"),
                *("math", "operator", "typing"),
                *("dashboard.models.Experiment", "dashboard.models.Regression", "dashboard.metric_scale"),
                "dashboard.judged_counters",
                "dashboard.measured_kinds",
                "dashboard.experiments.scale",
            }
        ),
    ),
    Room("dashboard/services", "dashboard.services", STANDARD | {"psycopg", "redis"}),
    # Whoever asks for an experiment reads its verdict: the room knows nobody who asks.
    Room(
        "dashboard/experiments",
        "dashboard.experiments",
        STANDARD | SITE | {"dashboard", "paceline.metrics", "paceline.manifest"},
        never=frozenset(
            f"dashboard.{name}"
            for name in (
                *("regressions", "alerts", "pages", "models.Regression", "models.RegressionExperiment"),
                *("pull_requests", "models.Check", "models.CheckedCase", "models.PullRequest"),
            )
        ),
    ),
    # What a forge says and is told: it knows nobody who listens, and neither page nor trigger.
    Room(
        "dashboard/forges",
        "dashboard.forges",
        STANDARD
        | {"django", "cryptography", "dashboard.outgoing_http", "dashboard.secrets"}
        | {"dashboard.models.ForgeConnection", "dashboard.models.Project"},
    ),
    Room(
        "dashboard",
        "dashboard",
        STANDARD
        | SITE
        | {"allauth", "brotli", "cronsim", "jwt", "ninja", "pydantic", "pydantic_core", "requests"}
        | {
            "django_htmx",
            "prometheus_client",
            "PIL",
            "whitenoise",
            "paceline.document",
            "paceline.document_rows",
            "paceline.phase_names",
            "paceline.metrics",
            "paceline.manifest",
            "paceline.profile",
            "paceline.progress_bar",
            # What claims say and how they are judged, never what measures them by hand.
            *(f"paceline.claims.{part}" for part in ("claim", "claims_file", "readings", "verdicts")),
            "paceline.statistics",
        },
    ),
    # A host may be anybody's machine: nothing of the site, no Django.
    Room(
        "workers/host",
        "workers.host",
        STANDARD
        | {"celery", "kombu", "redis", "psutil", "pynvml", "paceline.manifest", "paceline.document"}
        | {"paceline.watching.nvml"}
        | {"paceline.document_rows", "paceline.phase_names", "paceline.measured.fingerprint"}
        | {"dashboard.repositories", "dashboard.host_protocol"}
        | {"dashboard.heartbeat_file", "dashboard.structured_logs"},
    ),
    Room(
        "workers/site",
        "workers.site",
        STANDARD
        | {"celery", "django.db"}
        | {
            f"dashboard.{part}"
            for part in (
                *("runs", "experiments", "sentinels", "dispatch", "failed_jobs", "outbox", "retention"),
                "site_outages",
                *("heartbeat_file", "structured_logs", "page_cache", "garbage_collection"),
                *("regressions", "alerts", "pull_requests", "triggers", "project_setup", "claims"),
            )
        },
    ),
)


# The layers of dashboard/regressions, the lowest first. A module imports its own layer and those below;
# docs/architecture.md draws them. The package's own `__init__` stands on top.
REGRESSIONS = "dashboard.regressions"
LAYERS = (
    ("decision",),
    ("series", "changes", "reused_counters", "judged_rows"),
    (
        *("row_facts", "limit_violations", "snapshot", "branch_causes", "facts_to_gather"),
        *("environment_only", "explanation"),
    ),
    ("gathering", "merged_checks", "checked_causes", "false_alarm_budget", "apply"),
    ("judging", "redetection", "triage"),
)
# What the decision may import beside itself. Of the models it reads the lists of choices alone: no row, no
# query. None of the standard modules that know the time, the files or other processes is among these.
DECISION = frozenset(
    {
        *("__future__", "collections", "dataclasses", "enum", "functools", "itertools", "math", "operator"),
        *("statistics", "typing"),
        f"{REGRESSIONS}.decision",
        "dashboard.metric_scale",
        "dashboard.judged_counters",
        "dashboard.measured_kinds",
        "dashboard.experiments.scale.StepScale",
        *("dashboard.models.Experiment", "dashboard.models.Regression"),
    }
)
CHOICES = frozenset({"Cause", "Purpose", "Question", "State", "Verdict", "Withdrawal"})
# Beside choices: a spelling of two hashes.
PURE = CHOICES | {"difference_key"}


def room_of(path: str) -> Room | None:
    return next((room for room in ROOMS if path.startswith(room.folder + "/")), None)


@cache
def imported_names(source: str, package: str) -> list[tuple[int, str]]:
    """(line, dotted name) of every import; `from a import b` yields `a.b`, so that a submodule is seen."""
    names = []
    for node in all_statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module or ""]).strip(".")
            names += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return names


def all_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Without their expressions, which hold no import and are most of a file."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from all_statements(child)


def forbidden_imports(root: Path) -> list[str]:
    """One sentence for each import below `root` that no arrow allows."""
    sentences = []
    tops = sorted({room.folder.split("/")[0] for room in ROOMS})
    # An installed package leaves its copy in build/.
    files = [
        file
        for top in tops
        for file in (root / top).rglob("*.py")
        if "build" not in file.relative_to(root).parts
    ]
    for file in sorted(files):
        path = file.relative_to(root).as_posix()
        room = room_of(path)
        if room is None or any(part.startswith(".") for part in file.relative_to(root).parts):
            continue
        package = room.package + path.removeprefix(room.folder).rpartition("/")[0].replace("/", ".")
        for line, name in imported_names(file.read_text(), package):
            if not room.allows(name) and not is_sibling(root, file, name):
                sentences.append(f"{path}:{line} imports {name}, which {room.folder}/ may not")
    return sentences


def is_sibling(root: Path, file: Path, name: str) -> bool:
    """Whether `name` is a file beside a benchmark's: a script's own folder comes first on its path.

    The planted history's folder is completed by files of the benchmark that it derives from.
    """
    first = name.split(".")[0]
    return first not in OURS and "trainers" in file.parts and is_file_of_benchmark(root, first)


@cache
def is_file_of_benchmark(root: Path, name: str) -> bool:
    return any(root.glob(f"trainers/**/{name}.py"))


def regression_modules(root: Path) -> dict[str, set[str]]:
    """Each module of dashboard/regressions below `root`, by its name in there, with those that it imports."""
    folder = root / "dashboard/regressions"
    names = {module_name(folder, file): file for file in sorted(folder.rglob("*.py"))}
    return {name: set(inner_imports(name, file, set(names))) for name, file in names.items()}


def package_imports(root: Path, room: str) -> dict[str, set[str]]:
    """Each package or module of a room below `root`, with those beside it that it imports."""
    folder, prefix = root / room, room.replace("/", ".")
    imports: dict[str, set[str]] = {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        if "migrations" in parts or parts == ("__init__",):
            continue
        package = ".".join([prefix, *parts[:-1]])
        mine = imports.setdefault(parts[0], set())
        for _, name in imported_names(file.read_text(), package):
            if name.startswith(f"{prefix}."):
                mine.add(name.removeprefix(f"{prefix}.").split(".")[0])
        mine.discard(parts[0])
    return imports


def module_imports(root: Path, folder: str) -> dict[str, set[str]]:
    """Each module below `folder`, by its dotted name, with those that it imports: later and for types too."""
    top = (root / folder).parent
    files = [file for file in sorted((root / folder).rglob("*.py")) if "build" not in file.parts]
    names = {module_name(top, file): file for file in files}
    imports: dict[str, set[str]] = {}
    for name, file in names.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        imported = {name for _, name in imported_names(file.read_text(), package)}
        modules = {part if part in names else part.rpartition(".")[0] for part in imported}
        imports[name] = (modules & set(names)) - {name}
    return imports


def module_name(folder: Path, file: Path) -> str:
    return ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def inner_imports(name: str, file: Path, names: set[str]) -> Iterator[str]:
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for _, imported in imported_names(file.read_text(), f"{REGRESSIONS}.{package}".rstrip(".")):
        inner = imported.removeprefix(f"{REGRESSIONS}.")
        while inner != imported and inner and inner not in names:
            inner = inner.rpartition(".")[0]
        if inner != imported and inner and inner != name:
            yield inner


def layer_of(module: str) -> int | None:
    """Its place among LAYERS; None where it has none."""
    first = module.split(".")[0]
    return next((index for index, layer in enumerate(LAYERS) if first in layer), None)


def upward_imports(modules: dict[str, set[str]]) -> list[str]:
    """One sentence for each module without a layer, and for each import of a higher layer."""
    sentences = [f"{name} has no layer" for name in modules if name and layer_of(name) is None]
    for name, imported in modules.items():
        here = layer_of(name)
        for other in sorted(imported):
            there = layer_of(other)
            if here is not None and there is not None and there > here:
                sentences.append(f"{name} imports {other}, which is a layer above it")
    return sentences


def import_circles(modules: dict[str, set[str]]) -> list[str]:
    """The modules that import each other, directly or by others."""
    reached = {name: set(imported) for name, imported in modules.items()}
    for middle in modules:
        for name in modules:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    return [name for name in modules if name in reached[name]]


def impure_decisions(root: Path) -> list[str]:
    """One sentence for each impure import of decision/, and each use of a model that isn't one of PURE."""
    sentences = []
    folder = root / "dashboard/regressions/decision"
    for file in sorted(folder.rglob("*.py")):
        source = file.read_text()
        for line, name in imported_names(source, f"{REGRESSIONS}.decision"):
            if not has_prefix(name, DECISION):
                sentences.append(f"{file.name}:{line} imports {name}")
        sentences += [f"{file.name}:{line} uses {use}" for line, use in model_uses(ast.parse(source))]
    return sentences


def model_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, what) of each use of an imported model that isn't one of PURE."""
    models = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "dashboard.models"
        for alias in node.names
    }
    pure = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in PURE
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in models and id(node) not in pure:
            yield node.lineno, f"the model {node.id}"
