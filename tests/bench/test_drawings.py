"""The drawings of docs/method/ are what `python -m bench.drawings` makes."""

from __future__ import annotations

import pytest

from bench.drawings import DRAWINGS, FOLDER


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_current(name: str) -> None:
    drawn = DRAWINGS[name]().as_svg()
    assert (FOLDER / f"{name}.svg").read_text() == drawn, "run `python -m bench.drawings`"


def test_no_other_drawing_lies_there() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(DRAWINGS)
