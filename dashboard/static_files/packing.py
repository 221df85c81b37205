"""Files of the site as browsers like to get them: once compressed by each method, and kept."""

from __future__ import annotations

import gzip
import logging
import secrets
from pathlib import Path

import brotli

from dashboard.static_files.names import HashedFile

logger = logging.getLogger(__name__)

# Beyond this size the best quality takes seconds, and saves a tenth.
LARGE = 200_000
BEST, GOOD = 11, 9
PACKED_SUFFIXES = frozenset({".js", ".css", ".svg", ".json", ".txt"})


def pack_file(file: HashedFile, folder: Path) -> Path:
    """Where the file lies with `.gz` and `.br` beside it; its own path where that folder can't be written.

    A process that starts meanwhile makes the same.
    """
    if file.path.suffix not in PACKED_SUFFIXES:
        return file.path
    target = folder / file.hashed_name
    try:
        if not target.exists():
            content = file.path.read_bytes()
            target.parent.mkdir(parents=True, exist_ok=True)
            quality = GOOD if len(content) > LARGE else BEST
            _write_whole(target.with_name(f"{target.name}.br"), brotli.compress(content, quality=quality))
            _write_whole(target.with_name(f"{target.name}.gz"), gzip.compress(content, 9, mtime=0))
            # Last: where it is, the others are.
            _write_whole(target, content)
    except OSError as error:
        logger.warning("%s isn't sent compressed: %s", file.name, error)
        return file.path
    return target


def _write_whole(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    partial.write_bytes(content)
    partial.replace(path)
