"""`paceline.css` -> `paceline.0123456789ab.css`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from django.contrib.staticfiles import finders

HASH_LENGTH = 12


@dataclass(frozen=True, slots=True)
class HashedFile:
    """A file by the name that templates give it, and by the one that pages have."""

    name: str
    hashed_name: str
    path: Path


@cache
def list_hashed_files() -> dict[str, HashedFile]:
    """Of all apps, by their names in templates; of those that share a name the first one, as finders do."""
    found: dict[str, HashedFile] = {}
    for finder in finders.get_finders():
        for relative, storage in finder.list(None):
            prefix = (getattr(storage, "prefix", None) or "").strip("/")
            name = PurePosixPath(prefix, relative).as_posix()
            if name not in found:
                path = Path(storage.path(relative))
                found[name] = HashedFile(name, hash_name(name, path.read_bytes()), path)
    return found


def digest_hashed_names() -> str:
    """Other where a script or a style is another one, and so its name in pages."""
    names = sorted(file.hashed_name for file in list_hashed_files().values())
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def hash_name(name: str, content: bytes) -> str:
    path = PurePosixPath(name)
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    return path.with_name(f"{path.stem}.{digest}{path.suffix}").as_posix()
