"""One run from its claim to its document: claimed, preparing, measuring, storing, done; or failed."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.host_protocol import RunAssignment
from dashboard.repositories import safe_name
from workers.host.checkout.commit_code import CodeSource
from workers.host.configuration import HostConfiguration
from workers.host.errors import CrashError, LeaseLost, MeasuringError, SiteAway
from workers.host.execution import launching
from workers.host.execution.countings import CountingStore
from workers.host.execution.executor import Executor, PreparedCode, machine_trouble
from workers.host.site_api.client import SiteClient
from workers.host.site_api.outages import ask_site
from workers.host.site_api.spool import DocumentSpool

MEASUREMENT = "measurement"

logger = logging.getLogger(__name__)


class RunExecutor(Executor):
    """Executes one run; its document is stored at the end."""

    def __init__(
        self, assignment: RunAssignment, lock: int, configuration: HostConfiguration, client: SiteClient
    ) -> None:
        super().__init__(assignment, lock, configuration, client)
        self.assignment = assignment
        self.document = b""
        self.countings = CountingStore(self.home, assignment.machine, assignment.project)

    def renew(self, progress: float | None, text: str, log: str) -> bool:
        return self.client.heartbeat_run(self.assignment.lease, progress, text, log)

    def work(self) -> None:
        """Check out, prepare, measure."""
        run = self.assignment
        self.enter_state("preparing")
        self.require_box()
        source = CodeSource(self.client, run.project, run.manifest, run.benchmark, run.files, run.on_branch)
        prepared = self.prepare(source, run.commit)
        with (
            machine_trouble(CrashError),
            launching.scratch_folder(self.home, run.machine) as scratch,
        ):
            self.enter_state("measuring", self.box.describe())
            self.heartbeat.activity = "starting"
            self.heartbeat.progress = lambda: launching.read_progress(scratch)
            try:
                measurement = replace(self.measurement(prepared), counted=self.copy_counted_document(scratch))
                with self.costing(MEASUREMENT):
                    self.document = launching.run_harness(measurement, scratch, self.log, self.stop, self.box)
            finally:
                self.heartbeat.progress = lambda: None
        self.enter_state("storing", costs=self.host_costs())
        self.heartbeat.activity = "storing the document"

    def measurement(self, prepared: PreparedCode) -> launching.Measurement:
        run = self.assignment
        return launching.Measurement(
            benchmark=prepared.code.benchmark.name,
            params=run.params,
            repetitions=run.repetitions,
            quick=run.quick,
            time_limit=run.time_limit,
            checkout=prepared.code.folder,
            python=prepared.python,
            folders=prepared.folders,
            kept_files=prepared.code.kept_files,
            lock=self.lock,
            limits=self.limits,
        )

    def copy_counted_document(self, scratch: Path) -> Path | None:
        """A copy of what the site lets this run take over, for the measured code's account to read."""
        found = self.countings.find_counted(self.assignment)
        if found is None:
            return None
        copy = scratch / "counted.json"
        shutil.copyfile(found, copy)
        copy.chmod(0o644)
        return copy

    def host_costs(self) -> dict[str, float]:
        """What this host spent; of the measurement only what the harness doesn't tell: its box and launch."""
        spent = dict(self.costs)
        measurement = spent.pop(MEASUREMENT, 0.0)
        return {**spent, "box": max(0.0, measurement - reported_seconds(self.document))}

    def enter_state(
        self, state: str, box: Mapping[str, Any] | None = None, costs: Mapping[str, float] | None = None
    ) -> None:
        ask_site(lambda: self.client.advance_run(self.assignment.lease, state, box, costs), self.stop)

    def finish(self) -> None:
        """Kept on disk first: whatever ends this process meanwhile, its successor hands it in."""
        lease, rest = self.assignment.lease, self.heartbeat.rest_of_log()
        kept = self.keep_document()
        try:
            # The log's end first: a run that is done changes no more.
            ask_site(lambda: self.client.heartbeat_run(lease, None, "", rest))
            ask_site(lambda: self.client.store_document(lease, self.document))
            logger.info("%s is done", self.assignment.name)
            self.countings.keep_counted(self.assignment, self.document)
        except SiteAway:
            if kept is not None:
                logger.warning("%s: its document stays in %s until the site is back", self.job.name, kept)
            raise
        except (LeaseLost, MeasuringError):
            remove_document(kept)
            raise
        remove_document(kept)

    def keep_document(self) -> Path | None:
        """Keep the document on disk. None where the disk takes nothing: it is handed in all the same.

        Most often what was measured has filled the disk.
        """
        try:
            return document_spool(self.configuration).keep(self.assignment.lease, self.document)
        except OSError as error:
            logger.warning("%s: its document can't be kept on disk: %s", self.assignment.name, error)
            return None

    def give_up(self, error: MeasuringError) -> None:
        rest = self.heartbeat.rest_of_log()
        ask_site(lambda: self.client.fail_run(self.assignment.lease, error.kind, str(error), rest))


def reported_seconds(document: bytes) -> float:
    """What the whole took by the document; 0 where it doesn't tell. The site says what is wrong with it."""
    try:
        return float(json.loads(document)["costs"]["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return 0.0


def remove_document(kept: Path | None) -> None:
    if kept is not None:
        kept.unlink(missing_ok=True)


def document_spool(configuration: HostConfiguration) -> DocumentSpool:
    return DocumentSpool(configuration.home / "spool" / safe_name(configuration.identity.machine))
