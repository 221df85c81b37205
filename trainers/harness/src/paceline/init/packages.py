"""What a repository's code needs installed: missing modules, and what its environment is made of."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from platform import python_version

from ..manifest.toml_text import load_toml
from .repository import is_installed

# Modules whose package on the index has another name.
PACKAGE_NAMES = {
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "hydra": "hydra-core",
    "pl_bolts": "lightning-bolts",
    "pynvml": "nvidia-ml-py",
    "sensai": "sensai-utils",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
REQUIREMENTS = (
    "requirements.txt",
    "requirements/requirements.txt",
    "requirements/base.txt",
    "requirements-dev.txt",
)
LOCKS = ("uv.lock", "conda-lock.yml", "conda-lock.yaml")
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*((?:[=<>!~]=?=?\s*[^,;#\s]+\s*,?\s*)*)"
)
_CLAUSE = re.compile(r"(===|==|>=|<=|~=|!=|<|>)\s*([0-9][0-9A-Za-z.*+]*)")


@dataclass(frozen=True, slots=True)
class EnvironmentGuess:
    """The manifest's table `environment`. `conflicts` say what of it isn't as it is here."""

    requirements: tuple[str, ...] = ()
    lock: str = ""
    install: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def missing_modules(names: Iterable[str]) -> tuple[str, ...]:
    """The top-level modules of these dotted names that this interpreter doesn't find."""
    wanted = {name.split(".")[0] for name in names if name and not name.startswith("_")}
    if any(name.startswith("torch.utils.tensorboard") for name in names):
        wanted.add("tensorboard")
    return tuple(sorted(name for name in wanted if not is_installed(name)))


def package_name(module: str) -> str:
    """The package to install for a module."""
    return PACKAGE_NAMES.get(module, module.replace("_", "-"))


def guess_environment(folder: Path, script_folder: str, python_path: tuple[str, ...]) -> EnvironmentGuess:
    """What a commit's environment is made of: a lock, else requirements, else its own package."""
    places = [f"{script_folder}/requirements.txt"] if script_folder else []
    found = [place for place in (*places, *REQUIREMENTS) if (folder / place).is_file()][:1]
    lock = next((place for place in LOCKS if (folder / place).is_file()), "")
    declared = list(_own_dependencies(folder))
    conflicts = [_python_conflict(folder)]
    is_package = _has_own_package(folder)
    if lock:
        found = []
    elif found:
        declared = _read_requirements(folder / found[0])
    conflicts += [
        _version_conflict(line, (lock and "pyproject.toml") or (found or ["its package"])[0])
        for line in declared
    ]
    needs_install = is_package and (not found or not set(python_path) <= {"."})
    install: tuple[str, ...] = (".",) if needs_install and not lock else ()
    if is_package and _compiles_parts(folder):
        # Seen from the checkout the package is the one there, which must hold them.
        install = ("-e .",)
    return EnvironmentGuess(
        tuple(found),
        lock,
        install,
        python_path,
        tuple(conflict for conflict in conflicts if conflict),
    )


def _has_own_package(folder: Path) -> bool:
    if (folder / "setup.py").is_file() or (folder / "setup.cfg").is_file():
        return True
    project = _read_pyproject(folder)
    return "project" in project or "poetry" in project.get("tool", {})


def _compiles_parts(folder: Path) -> bool:
    """Whether building the package compiles modules of its own."""
    build = folder / "setup.py"
    if build.is_file() and "ext_modules" in build.read_text(errors="replace"):
        return True
    setuptools = _read_pyproject(folder).get("tool", {}).get("setuptools", {})
    return isinstance(setuptools, dict) and "ext-modules" in setuptools


def _own_dependencies(folder: Path) -> Iterator[str]:
    dependencies = _read_pyproject(folder).get("project", {}).get("dependencies", [])
    if isinstance(dependencies, list):
        yield from (line for line in dependencies if isinstance(line, str))


def console_scripts(folder: Path) -> dict[str, str]:
    """The module behind each command that the repository's own package installs, and the command's name."""
    scripts = _read_pyproject(folder).get("project", {}).get("scripts", {})
    if not isinstance(scripts, dict):
        return {}
    return {str(target).partition(":")[0]: str(name) for name, target in scripts.items()}


def _read_pyproject(folder: Path) -> dict[str, dict[str, object]]:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        read = load_toml(path.read_text(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return {name: table for name, table in read.items() if isinstance(table, dict)}


def _read_requirements(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text(errors="replace").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def _python_conflict(folder: Path) -> str:
    wanted = _read_pyproject(folder).get("project", {}).get("requires-python")
    if not isinstance(wanted, str) or _is_allowed(wanted, python_version()):
        return ""
    return f"pyproject.toml wants Python {wanted}, this is {python_version()}"


def _version_conflict(line: str, source: str) -> str:
    """What a requirement wants otherwise than it is installed here; empty where it isn't, or fits."""
    matched = _REQUIREMENT.match(line)
    if matched is None or not matched[2]:
        return ""
    try:
        installed = importlib.metadata.version(matched[1])
    except importlib.metadata.PackageNotFoundError:
        return ""
    if _is_allowed(matched[2], installed):
        return ""
    return f"{source} wants {matched[1]}{matched[2].replace(' ', '')}, here is {installed}"


def _is_allowed(specifier: str, version: str) -> bool:
    """Whether a version lies within clauses such as >=3.8,<3.11; what can't be read is taken as allowed."""
    return all(_clause_is_allowed(operator, bound, version) for operator, bound in _CLAUSE.findall(specifier))


def _clause_is_allowed(operator: str, bound: str, version: str) -> bool:
    wanted, has = _read_numbers(bound), _read_numbers(version)
    if operator in ("==", "==="):
        return (
            has[: len(wanted)] == wanted
            if bound.endswith("*")
            else _pad_numbers(has, wanted) == _pad_numbers(wanted, has)
        )
    if operator == "~=":
        return has >= wanted and has[: len(wanted) - 1] == wanted[:-1]
    left, right = _pad_numbers(has, wanted), _pad_numbers(wanted, has)
    return {">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right}.get(
        operator, True
    )


def _read_numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version.split("+")[0])]


def _pad_numbers(numbers: list[int], other: list[int]) -> list[int]:
    return numbers + [0] * (len(other) - len(numbers))
