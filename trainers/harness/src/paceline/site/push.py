"""The command `push`: posts a document to a site, as a run of its commit."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .. import document
from .arguments import add_site_arguments
from .client import read_site
from .commit_names import name_commit
from .errors import SiteError

DEFAULT_MACHINE = "ci"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Posts documents that were measured here, as runs of a commit. The site judges them among those of "
        "the same machine and processor. The same document posted twice is one run."
    )
    parser.add_argument(
        "documents", type=Path, nargs="+", metavar="DOCUMENT", help="that `paceline run` wrote"
    )
    parser.add_argument(
        "--commit", metavar="COMMIT", help="of which they are (default: what is checked out here)"
    )
    parser.add_argument(
        "--machine",
        default=DEFAULT_MACHINE,
        metavar="NAME",
        help=f"what measured them, as you call it (default: {DEFAULT_MACHINE})",
    )
    add_site_arguments(parser)


def push_documents(arguments: argparse.Namespace) -> int:
    """Post them in order; prints the address of each run. Raises SiteError, DocumentError, OSError."""
    site = read_site(arguments.site, arguments.token_file)
    # Before anything is sent: all or none, as far as that can be known here.
    bodies = [read_document(path) for path in arguments.documents]
    commit = name_commit(arguments.commit)
    project = site.project()
    for path, body in zip(arguments.documents, bodies, strict=True):
        query = {"commit": commit, "machine": arguments.machine}
        try:
            run = site.send("POST", f"/projects/{project}/documents", query, body)
        except SiteError as error:
            raise SiteError(f"{path}: {error}") from error
        print(f"{run['case']} at {run['commit']['hash'][:10]}: {run['url']}")
    return 0


def read_document(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        document.read_document(data)
    except document.DocumentError as error:
        raise document.DocumentError(f"{path}: {error.path}".rstrip(": "), error.sentence) from error
    # Without the blanks that people read: a site takes no more bytes than a document may have.
    return json.dumps(json.loads(data), separators=(",", ":")).encode()
