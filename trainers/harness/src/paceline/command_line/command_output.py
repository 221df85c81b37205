"""What commands read and write: documents, a progress file, and sentences on stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import document
from ..document_building.refused_parts import without_refused_parts
from ..manifest.toml_table import ManifestError
from ..protocol import Progress
from ..reports import report


def check_output_paths(*paths: Path | None) -> None:
    """Refuse a file that couldn't be written, before minutes are spent on measuring."""
    for path in paths:
        if path is None:
            continue
        if not path.parent.is_dir():
            raise ManifestError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise ManifestError(f"{path}: is a folder, name a file in it")
        # A file is replaced whole, for which the folder counts.
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ManifestError(f"{path}: the folder {path.parent} can't be written")


def read_document(path: Path) -> document.Document:
    """Read a document's file; an error of its names the file."""
    try:
        return document.read_document(path.read_bytes())
    except document.DocumentError as error:
        raise document.DocumentError(f"{path}: {error.path}".rstrip(": "), error.sentence) from error


def write_and_show(raw: dict[str, Any], target: Path | None, progress: Progress) -> int:
    """Write what was measured, where a file is wanted, and print its report; return the exit status.

    OSError where the file can't be written, once the report is printed: what was measured isn't lost.
    """
    try:
        measured = _check_document(raw)
    except document.DocumentError:
        raw = without_refused_parts(raw)
        measured = _check_document(raw)
    try:
        if target:
            document.write_document(raw, target)
    except OSError:
        print(report.format_document(measured), flush=True)
        raise
    progress(1.0, "done")
    print(report.format_document(measured))
    return 0


def _check_document(raw: dict[str, Any]) -> document.Document:
    return document.read_document(json.dumps(raw))


def print_message(text: str) -> None:
    """Say on stderr what goes on."""
    print(f"paceline: {text}", file=sys.stderr, flush=True)


class ProgressReporter:
    """Keeps a progress file, replaced whole; on a terminal also a line."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._before = ""

    def __call__(self, fraction: float, text: str) -> None:
        # Nobody's measurement ends because a disk is full for a moment, or because nobody reads.
        with suppress(OSError):
            self._write_file(fraction, text)
        if text != self._before:
            self._before = text
            with suppress(OSError):
                print(f"paceline: {text}", file=sys.stderr, flush=True)

    def _write_file(self, fraction: float, text: str) -> None:
        if self._path is not None:
            partial = self._path.with_name(f".{self._path.name}.partial")
            partial.write_text(json.dumps({"fraction": fraction, "text": text}))
            partial.replace(self._path)
