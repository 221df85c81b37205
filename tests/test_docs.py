from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from paceline.metrics import METRICS

from tests.generate_docs import generated_files

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "trainers").rglob("*.md")])


def test_generated_parts_are_current() -> None:
    stale = [path.name for path, text in generated_files().items() if path.read_text() != text]
    assert stale == [], "run `python -m tests.generate_docs`"


def test_the_glossary_has_every_table() -> None:
    words = re.findall(r"^\*\*(.+?)\*\*", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    tables = [str(model._meta.verbose_name) for model in apps.get_app_config("dashboard").get_models()]
    assert [table for table in tables if table not in words] == []


def test_the_glossary_has_every_metric() -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    assert [name for name in METRICS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_names_only_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", (ROOT / "README.md").read_text())) <= targets
