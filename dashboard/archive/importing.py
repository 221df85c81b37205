"""An archive as a new project: one transaction, by COPY; a second import of the same file changes nothing."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from dashboard.archive.columns import fill_columns, value_converter
from dashboard.archive.points import copy_points
from dashboard.archive.reading import ArchiveReader, ArchiveRefused, TableHead, read_whole
from dashboard.archive.tables import PROJECT, TABLES, ArchiveTable, referred_tables
from dashboard.environments import store_environments
from dashboard.models import Claim, ClaimMeasurement, Environment, Machine, Metric, Pool, Project
from dashboard.postgresql.bulk_copy import allocate_keys, column_name, copy_statement

ReportProgress = Callable[[int, int], None]


@dataclass(slots=True)
class ImportedArchive:
    """`rows` of each table that were read; `is_new` is False where this very archive was there already."""

    project: Project
    is_new: bool
    rows: dict[str, int] = field(default_factory=dict)


def import_archive(
    slug: str, path: Path, report_progress: ReportProgress = lambda *_: None
) -> ImportedArchive:
    """Make the project of this name from an archive; raises ArchiveRefused, nothing is stored then."""
    existing = Project.objects.filter(slug=slug).first()
    if existing is not None:
        if existing.archive_sha256 and read_whole(path, report_progress) == existing.archive_sha256:
            return ImportedArchive(existing, is_new=False)
        raise ArchiveRefused(
            f"There is a project {slug!r} already, and it wasn't made from this file: an archive becomes a "
            "project of its own, so choose another name."
        )
    reader = ArchiveReader(path, report_progress)
    try:
        with transaction.atomic():
            return _ArchiveImport(reader, slug).store_tables()
    finally:
        reader.close()


def find_newest_measurements(project: Project) -> None:
    """Let each claim stand by the measurement that it stood by: the newest one at its newest commit."""
    measured = ClaimMeasurement.objects.filter(
        claim=OuterRef("pk"),
        digest=OuterRef("digest"),
        state=ClaimMeasurement.State.DONE,
        commit__branch=project.branch,
    ).order_by("-commit__position", "-pk")
    Claim.objects.filter(project=project).update(newest=Subquery(measured.values("pk")[:1]))


class _ArchiveImport:
    def __init__(self, reader: ArchiveReader, slug: str) -> None:
        self.reader = reader
        self.project = Project(slug=slug)
        # Of each table that others refer to: the key of its rows, by their numbers.
        self.keys: dict[str, array[int]] = {}

    def store_tables(self) -> ImportedArchive:
        done = ImportedArchive(self.project, is_new=True)
        for table in TABLES:
            head = self.reader.read_head(table)
            done.rows[table.name] = head.rows
            try:
                # Inside, an error of the database leaves the transaction as it was: it can still be reported.
                with transaction.atomic():
                    self._store_table(head)
            except (IntegrityError, DataError) as error:
                reason = " ".join(str(error).split())
                raise self.reader.refuse(table.name, f"can't be stored: {reason}") from error
        digest = self.reader.read_end()
        find_newest_measurements(self.project)
        self.project.archive_sha256, self.project.imported_at = digest, timezone.now()
        self.project.save(update_fields=["archive_sha256", "imported_at"])
        return done

    def _store_table(self, head: TableHead) -> None:
        table = head.table
        rows = self.reader.read_rows(head)
        if table is PROJECT:
            self._store_project(head, rows)
        elif table.natural_key:
            self.keys[table.name] = array("q", self._store_shared_rows(head, rows))
        elif table.packed:
            copy_points(head, rows, self.keys, self.reader.refuse)
        else:
            self._copy_rows(head, rows)

    def _store_project(self, head: TableHead, rows: Iterator[list[Any]]) -> None:
        for number, row in enumerate(rows):
            if number:
                raise self.reader.refuse("project.rows", "is more than one")
            for column, value in zip(head.fields, row, strict=True):
                setattr(self.project, column.name, column.to_python(value))
        for name, value in PROJECT.imported_as.items():
            setattr(self.project, name, value)
        if head.rows != 1:
            raise self.reader.refuse("project.rows", f"is {head.rows}, not 1")
        created_at = self.project.created_at
        # A project of another tool's history has none.
        unchecked = [] if self.project.repository else ["repository"]
        try:
            self.project.full_clean(exclude=unchecked)
        except ValidationError as error:
            name, sentences = next(iter(error.message_dict.items()))
            if name == "slug":
                raise ArchiveRefused(f"slug: {sentences[0]}") from error
            raise self.reader.refuse(
                f"project[0].{name}", f"can't be taken: {sentences[0].rstrip('.')}"
            ) from error
        self.project.save()
        # Which is when it began, not when it came here.
        Project.objects.filter(pk=self.project.pk).update(created_at=created_at or timezone.now())

    def _store_shared_rows(self, head: TableHead, rows: Iterator[list[Any]]) -> Iterator[int]:
        """Rows of the whole site, found by their natural key or made: their keys in the file's order."""
        names = [column.name for column in head.fields]
        for number, row in enumerate(rows):
            values = dict(zip(names, row, strict=True))
            yield self._find_or_make(head.table, values, f"{head.table.name}[{number}]")

    def _find_or_make(self, table: ArchiveTable, values: dict[str, Any], where: str) -> int:
        if table.model is Environment:
            if not isinstance(values["values"], dict):
                raise self.reader.refuse(f"{where}.values", "isn't an object")
            return store_environments([values["values"]])[0]
        if table.model is Machine:
            pool = self._referred_key("pool", values.pop("pool"), where)
            # It measures nothing here until it joins.
            made = {**values, "pool_id": pool, "state": Machine.State.RETIRED}
            return Machine.objects.get_or_create(name=made.pop("name"), defaults=made)[0].pk
        if table.model is Pool:
            return Pool.objects.get_or_create(name=values["name"])[0].pk
        named = {name: values.pop(name) for name in table.natural_key}
        metric, _ = Metric.objects.get_or_create(**named, defaults=values)
        for name, value in values.items():
            if getattr(metric, name) != value:
                raise self.reader.refuse(
                    f"{where}.{name}", f"is {value!r}; {metric.name} has {getattr(metric, name)!r} here"
                )
        return metric.pk

    def _referred_key(self, table: str, number: int, where: str) -> int:
        if number >= len(self.keys[table]):
            raise self.reader.refuse(f"{where}.{table}", f"is {number}, and there is no such row")
        return self.keys[table][number]

    def _copy_rows(self, head: TableHead, rows: Iterator[list[Any]]) -> None:
        table = head.table
        own_keys: array[int] | None = None
        if table.name in referred_tables():
            own_keys = self.keys[table.name] = allocate_keys(table.model, head.rows)
        filled = fill_columns(head, self.project)
        columns = [column_name(column) for column in head.fields]
        key = [column_name(table.model._meta.pk)] if own_keys is not None else []
        statement = copy_statement(table.model, [*key, *columns, *filled])
        converters = [value_converter(column, self.keys) for column in head.fields]
        with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
            for number, row in enumerate(rows):
                try:
                    values = [convert(value) for convert, value in zip(converters, row, strict=True)]
                except IndexError:
                    raise self._dangling_reference(head, row, number) from None
                values += [make() for make in filled.values()]
                copy.write_row([own_keys[number], *values] if own_keys is not None else values)

    def _dangling_reference(self, head: TableHead, row: list[Any], number: int) -> ArchiveRefused:
        for column, value in zip(head.fields, row, strict=True):
            try:
                value_converter(column, self.keys)(value)
            except IndexError:
                where = f"{head.table.name}[{number}].{column.name}"
                return self.reader.refuse(where, f"is {value}, and there is no such row")
        return self.reader.refuse(f"{head.table.name}[{number}]", "refers to no row")
