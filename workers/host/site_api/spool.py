"""Documents that wait on disk until the site has taken them: no outage and no crash costs a measurement."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from dashboard.host_protocol import Lease
from workers.host.errors import BadDocumentError, LeaseLost, SiteBroken
from workers.host.site_api.client import SiteClient

logger = logging.getLogger(__name__)

MOST_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class DocumentSpool:
    """The documents of one machine under a host's home."""

    folder: Path

    def keep(self, lease: Lease, document: bytes) -> Path:
        """Keep a document; the file is whole once it has its name, also after a power cut."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{lease.key}-{lease.attempt}-{lease.token}.json"
        draft = path.with_suffix(".draft")
        try:
            write_durably(draft, document)
            draft.rename(path)
            sync_folder(self.folder)
        except OSError:
            # What a full disk took of it would keep the disk full.
            draft.unlink(missing_ok=True)
            raise
        return path

    def waiting(self) -> list[tuple[Lease, Path]]:
        """What is kept, the oldest first. Files whose names are none of ours are left alone."""
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        leases = ((parse_lease_name(path.stem), path) for path in files)
        return [(lease, path) for lease, path in leases if lease is not None]

    def kept_runs(self) -> list[int]:
        return [lease.key for lease, _ in self.waiting()]

    def hand_in(self, client: SiteClient) -> None:
        """Hand in what an outage has left; SiteAway where it goes on.

        What the site fails at is left for a later try, and a week at most: it must hold up nothing else.
        Nobody writes meanwhile: what isn't whole yet was left by a crash.
        """
        for draft in self.folder.glob("*.draft"):
            draft.unlink(missing_ok=True)
        for lease, path in self.waiting():
            try:
                store_or_fail(client, lease, path.read_bytes())
                logger.info("The document of run %s, kept through an outage, is stored", lease.key)
            except LeaseLost:
                logger.info("The document of run %s comes too late: it was measured again", lease.key)
            except SiteBroken as error:
                logger.warning("The document of run %s isn't taken: %s", lease.key, error)
                if time.time() - path.stat().st_mtime < MOST_SECONDS:
                    continue
            path.unlink(missing_ok=True)


def store_or_fail(client: SiteClient, lease: Lease, document: bytes) -> None:
    """Hand in a document; a refused one fails its run. LeaseLost, SiteAway."""
    try:
        client.store_document(lease, document)
    except BadDocumentError as error:
        client.fail_run(lease, error.kind, str(error), "")


def parse_lease_name(name: str) -> Lease | None:
    """The lease that a kept document is named after; None of any other name."""
    try:
        key, attempt, token = name.split("-", 2)
        return Lease(int(key), int(attempt), UUID(token))
    except ValueError:
        return None


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, and have the disk hold it before anything else is done."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the disk hold the folder's names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
