"""The files of a repository that matter here: its Python files with their facts, and who imports whom."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .script_facts import ScriptFacts, read_script

FILES_LIMIT = 5_000
SIZE_LIMIT = 400_000
# Folders that hold no training script of the repository's own.
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__", "wandb", "outputs"})


@dataclass(slots=True)
class Repository:
    """`files` are by their path from `folder`, with slashes."""

    folder: Path
    files: Mapping[str, ScriptFacts]
    texts: Mapping[str, str] = field(default_factory=dict)  # READMEs, by their path
    roots: tuple[str, ...] = ("",)  # folders from which packages are imported
    _folders: set[str] = field(default_factory=set)  # that hold modules, at any depth

    def __post_init__(self) -> None:
        self._folders = {str(parent) for path in self.files for parent in PurePosixPath(path).parents}

    def find_module(self, name: str, script_folder: str) -> tuple[list[str], str] | None:
        """The files that importing a dotted name loads, and the root that they were found from.

        None where the repository doesn't hold what the name begins with.
        """
        parts = name.split(".")
        for root in dict.fromkeys((script_folder, *self.roots)):
            prefix = f"{root}/" if root else ""
            # A folder without `__init__.py` is a package too.
            if f"{prefix}{parts[0]}.py" in self.files or f"{prefix}{parts[0]}" in self._folders:
                places = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
                paths = [f"{prefix}{place}{end}" for place in places for end in (".py", "/__init__.py")]
                return [path for path in paths if path in self.files], root
        return None


def read_repository(folder: Path) -> Repository:
    """Read the Python files and READMEs below a folder."""
    files: dict[str, ScriptFacts] = {}
    texts: dict[str, str] = {}
    for path in _walk_files(folder):
        place = path.relative_to(folder).as_posix()
        if path.suffix == ".py":
            facts = read_script(path.read_bytes())
            if facts is not None:
                files[place] = facts
        else:
            texts[place] = path.read_text(errors="replace")
    roots = ("", "src") if (folder / "src").is_dir() else ("",)
    return Repository(folder, files, texts, roots)


def _walk_files(folder: Path) -> Iterator[Path]:
    number = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in LEFT_OUT
            and not Path(place, name, "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            path = Path(place, name)
            wanted = path.suffix == ".py" or (name.lower().startswith("readme") and path.suffix != ".ipynb")
            if wanted and path.is_file() and path.stat().st_size <= SIZE_LIMIT:
                yield path
                number += 1
                if number >= FILES_LIMIT:
                    return


def is_installed(name: str) -> bool:
    """Whether this interpreter finds a top-level module, outside the repository."""
    if name in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
