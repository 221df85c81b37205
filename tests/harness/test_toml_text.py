"""TOML that somebody pushed is read in little memory, or refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from paceline.claims.claims_file import parse_claims
from paceline.manifest import ManifestError, parse_manifest
from paceline.manifest.policy import parse_policy_text
from paceline.manifest.toml_text import KEY_PARTS_LIMIT, load_toml

PARTS = 4000


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * PARTS) + " = 1",
        f"[{'.'.join(['a'] * PARTS)}]\nb = 1",
        " . ".join(["'a b'"] * PARTS) + " = 1",
        ".".join(['"\\""'] * PARTS) + " = 1",
        "x = {" + ".".join(["a-1"] * PARTS) + " = 1}",
        ".".join(['""'] * PARTS) + " = 1",
        'x = {a = """\n""", ' + ".".join(["b"] * PARTS) + " = 1}",
        'x = {a = """\n\\""" "" """"", ' + ".".join(["b"] * PARTS) + " = 1}",
        "x = {a = '''\n'''', " + ".".join(["b"] * PARTS) + " = 1}",
        "x = [ # don't\n {" + ".".join(["b"] * PARTS) + " = 1}]",
    ],
)
@pytest.mark.parametrize("parse", [parse_manifest, parse_policy_text, parse_claims])
def test_a_key_of_many_parts_is_refused_before_it_is_read(
    text: str, parse: Callable[[str, str], object]
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ManifestError, match=f"a key has more than {KEY_PARTS_LIMIT} parts"):
            parse(text, "m")
        # The parser itself takes half a square of the number of parts, in words.
        assert tracemalloc.get_traced_memory()[1] < PARTS**2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".".join(["a"] * KEY_PARTS_LIMIT) + " = 1", None),
        (f"a = [{', '.join(['0.1'] * 500)}]", [0.1] * 500),
        (f"a = '{'. ' * 500}'", ". " * 500),
        ('a = "' + 'x \\" y. ' * 100 + '"', 'x " y. ' * 100),
        ("a = 1  # " + "... " * 500, 1),
        ("a = 1  # " + "b." * 500, 1),
        (f'a = """{"b." * 500}"x" \\""" """""', f'{"b." * 500}"x" """ ""'),
        (f"a = '''{'b.' * 500}'x' ''''", f"{'b.' * 500}'x' '"),
    ],
)
def test_what_only_has_many_dots_is_read(text: str, value: object) -> None:
    read = load_toml(text)
    assert list(read) == ["a"]
    assert value is None or read["a"] == value
