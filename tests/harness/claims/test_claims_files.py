"""Where a benchmark's claims lie, by which files are there."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from paceline.claims.claims_file import find_claims_file
from paceline.manifest import parse_manifest
from paceline.manifest.toml_table import ManifestError

BENCHMARK = '[benchmarks.{name}]\nversion = 1\nscript = "{script}"\nsteps = 10\n'


def found_file(there: Collection[str], **scripts: str) -> str | None:
    """The file of the first benchmark, where these files are there."""
    text = "".join(BENCHMARK.format(name=name, script=script) for name, script in scripts.items())
    benchmarks = parse_manifest(text, "paceline.toml").benchmarks
    path = find_claims_file(next(iter(benchmarks.values())), benchmarks, lambda path: str(path) in there)
    return path.as_posix() if path else None


@pytest.mark.parametrize(
    ("there", "scripts", "found"),
    [
        ((), {"one": "scripts/one.py"}, None),
        (("claims.toml",), {"one": "scripts/one.py"}, "claims.toml"),
        (("claims.toml",), {"one": "scripts/one.py", "two": "other/two.py"}, None),
        (("claims.toml", "scripts/claims.toml"), {"one": "scripts/one.py"}, "scripts/claims.toml"),
        # Two benchmarks of one script are about the same.
        (("scripts/claims.toml",), {"one": "scripts/one.py", "two": "scripts/one.py"}, "scripts/claims.toml"),
        (
            ("scripts/claims.toml", "scripts/claims.one.toml"),
            {"one": "scripts/one.py", "two": "scripts/two.py"},
            "scripts/claims.one.toml",
        ),
        # The other one has claims of its own.
        (
            ("scripts/claims.toml", "scripts/claims.two.toml"),
            {"one": "scripts/one.py", "two": "scripts/two.py"},
            "scripts/claims.toml",
        ),
    ],
)
def test_the_nearest_file_is_found(
    there: Collection[str], scripts: dict[str, str], found: str | None
) -> None:
    assert found_file(there, **scripts) == found


def test_a_file_beside_several_scripts_has_to_say_which() -> None:
    with pytest.raises(ManifestError) as raised:
        found_file(["scripts/claims.toml"], one="scripts/one.py", two="scripts/two.py")
    assert raised.value.sentence == (
        "scripts/claims.toml: lies beside the scripts of one, two, name it after the one that it is about: "
        "claims.one.toml."
    )
