"""The manifests of commits, out of a mirror."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.manifest import FILE_NAME, SIZE_LIMIT, ManifestError, decode_manifest

from dashboard.repositories.mirror import Mirror
from dashboard.repositories.objects import GitObject, read_objects


def read_manifests(mirror: Mirror, hashes: Iterable[str]) -> dict[str, str | ManifestError]:
    """Of each commit that has a paceline.toml its text, or what is wrong with it."""
    found: dict[str, str | ManifestError] = {}

    def collect(answer: GitObject) -> None:
        sha = answer.name.partition(":")[0]
        if answer.kind:
            try:
                found[sha] = _manifest_text(answer, f"{FILE_NAME} of {sha[:10]}")
            except ManifestError as error:
                found[sha] = error

    read_objects(mirror, [f"{sha}:{FILE_NAME}" for sha in hashes], collect, most_bytes=SIZE_LIMIT + 1)
    return found


def _manifest_text(answer: GitObject, where: str) -> str:
    if answer.kind == "link":
        raise ManifestError(f"{where}: is a symbolic link that doesn't lead to a file of the commit")
    if answer.kind != "blob":
        raise ManifestError(f"{where}: is a folder, must be a file")
    return decode_manifest(answer.data, where)
