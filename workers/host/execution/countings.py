"""What this machine has counted lately, for commits that change nothing of it: the harness decides that.

A file per commit and case, the newest few of each case. Losing them costs a counting, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from dashboard.host_protocol import RunAssignment
from dashboard.repositories import safe_name

logger = logging.getLogger(__name__)

MOST_OF_CASE = 4
MOST_OF_PROJECT = 200
# Of a document, as much as its counters and their profile need.
KEPT_MEMBERS = ("metrics", "profile", "counting")


class CountingStore:
    """The countings of one project under a host's home."""

    def __init__(self, home: Path, machine: str, project: str) -> None:
        self.folder = home / "countings" / safe_name(machine) / safe_name(project)

    def path_of(self, run: RunAssignment, commit: str) -> Path:
        """Where a commit's counting of the run's case lies."""
        case = json.dumps([run.benchmark, run.case_key, run.quick]).encode()
        return self.folder / f"{hashlib.sha256(case).hexdigest()[:20]}-{safe_name(commit)}.json"

    def find_counted(self, run: RunAssignment) -> Path | None:
        """The counting that the site names for this run, where it is of this machine."""
        path = self.path_of(run, run.counted_at) if run.counted_at else None
        return path if path is not None and path.is_file() else None

    def keep_counted(self, run: RunAssignment, document: bytes) -> None:
        """Keep what a stored document counted, unless it took that over or another can't."""
        try:
            self._write(run, json.loads(document))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("What %s counted isn't kept: %s", run.name, error)

    def _write(self, run: RunAssignment, document: dict[str, Any]) -> None:
        counting = document.get("counting")
        if not counting or counting["counted_at"] or counting["doubts"]:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # One process at a time measures, and keeps what it counted: what isn't whole yet was left by a crash.
        for draft in self.folder.glob("*.draft"):
            draft.unlink(missing_ok=True)
        path = self.path_of(run, run.commit)
        draft = path.with_suffix(".draft")
        kept = {name: document[name] for name in KEPT_MEMBERS}
        kept["metrics"] = [row for row in kept["metrics"] if row["kind"] == "counter"]
        draft.write_text(json.dumps({"commit": run.commit, "document": kept}))
        draft.rename(path)
        case = path.name.partition("-")[0]
        self._remove_oldest(f"{case}-*.json", MOST_OF_CASE)
        self._remove_oldest("*.json", MOST_OF_PROJECT)

    def _remove_oldest(self, pattern: str, most: int) -> None:
        files = sorted(self.folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in files[most:]:
            with suppress(OSError):
                path.unlink()
