"""What large sites are told by: a column for each, and what the largest one says of a larger one on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import scale


def figures_of(points: int) -> dict[str, Any]:
    return {
        "processors": 2,
        "load": 0.5,
        "points": points,
        "series": 5000,
        "runs": 20_000,
        "database": 310 * points,
        "tables": {"dashboard_point": [140 * points, 150 * points]},
        "point_indexes": {},
        "queries": {scale.JUDGEMENT: 10.0},
        "stored_per_second": 10_000.0,
    }


def test_the_largest_site_is_the_one_on_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "scale.md"
    document.write_text("\n".join(["above", *scale.MARKERS, "between", *scale.PAPER_MARKERS, "below"]))
    monkeypatch.setattr(scale, "DOCUMENT", document)
    files = []
    for points in (50_000_000, 2_000_000):
        files.append(tmp_path / f"{points}.json")
        files[-1].write_text(json.dumps(figures_of(points)))
    scale.write_tables([json.loads(file.read_text()) for file in files])
    text = document.read_text()
    assert text.startswith("above")
    assert text.endswith("below")
    assert "| points | 2,000,000 | 50,000,000 |" in text
    assert "| bytes a point: everything else | 20 | 20 |" in text
    # A billion points of 140 bytes; 1,000 machines, each with 100 series every half hour.
    assert "| points, GB | 140 |" in text
    assert "| points stored a second | 56 |" in text
    assert "| processors that read histories for judging | 0.56 |" in text
