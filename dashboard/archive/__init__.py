"""A whole project as one file, and as a project again: docs/export.md describes the file."""

from dashboard.archive.importing import ImportedArchive, import_archive
from dashboard.archive.reading import ArchiveRefused
from dashboard.archive.writing import archive_name, compress_lines, write_archive

__all__ = [
    "ArchiveRefused",
    "ImportedArchive",
    "archive_name",
    "compress_lines",
    "import_archive",
    "write_archive",
]
