from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.core.management.base import BaseCommand
from paceline.metrics import METRICS

from dashboard.management.commands.experiment import Command as ExperimentCommand
from dashboard.pages.experiments.form import FIELDS
from dashboard.services.processes import HOST_VARIABLES
from tests.generate_docs import generated_files
from tests.rooms import LAYERS, imported_names

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "trainers").rglob("*.md")])

ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
# | 1 | `module` | `caller` | ...
STATIONS = re.findall(r"^\| \d+ \| `([\w.]+)` \| `([\w.]+)` \|", ARCHITECTURE, re.MULTILINE)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)", page.read_text())
    targets = [(page.parent / file if file else page, heading) for file, heading in links]
    lost = [
        heading for file, heading in targets if file.suffix == ".md" and heading not in heading_anchors(file)
    ]
    assert lost == []


def heading_anchors(page: Path) -> set[str]:
    """The anchors that a forge gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_options_of_an_experiment_are_those_of_the_command() -> None:
    text = (ROOT / "docs/experiments.md").read_text()
    parser = ExperimentCommand().create_parser("manage.py", "experiment")
    own = {
        option for action in parser._actions for option in action.option_strings if option.startswith("--")
    }
    common = {
        option for option in own if option in BaseCommand().create_parser("manage.py", "").format_help()
    }
    rows = [line.partition(" | ")[0] for line in text.splitlines() if line.startswith("| `--")]
    assert {option for row in rows for option in re.findall(r"--[a-z-]+", row)} == own - common
    fields = re.search(r"It may also have (.+?)\.", " ".join(text.split()))
    assert fields is not None
    assert {"base", "head", *re.findall(r"`(\w+)`", fields[1])} == set(FIELDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) - targets == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_management_command_that_is_named_exists(page: Path) -> None:
    assert set(re.findall(r"manage\.py ([a-z_]+)", page.read_text())) - set(get_commands()) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_setting_that_is_named_is_read(page: Path) -> None:
    assert set(re.findall(r"\bPACELINE_[A-Z_]*[A-Z]\b", page.read_text())) - settings_in_code() == set()


@cache
def settings_in_code() -> set[str]:
    """The variables that code names, those of a host, and the one that a reader gives to their own CI."""
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")] + [ROOT / "docker-compose.yml"]
    names = {name for file in files for name in re.findall(r"\bPACELINE_[A-Z_]*[A-Z]\b", file.read_text())}
    return names | set(HOST_VARIABLES) | {"PACELINE_SOURCE"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_function_that_is_named_exists(page: Path) -> None:
    names = set(re.findall(r"`((?:dashboard|workers|bench)(?:\.\w+)+)`", page.read_text()))
    assert sorted(name for name in names if not is_there(name)) == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    for parts in range(name.count(".") + 1, 0, -1):
        module, rest = ".".join(name.split(".")[:parts]), name.split(".")[parts:]
        try:
            found: object = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for part in rest:
            found = getattr(found, part, None)
        return found is not None
    return False


ROOMS = ("bench", "dashboard", "deploy", "docs", "templates", "tests", "trainers", "workers")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_path_that_is_named_exists(page: Path) -> None:
    """From the root, or the end of one, such as `pages/runs/run.py`."""
    names = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|html|css))`", page.read_text()))
    assert sorted(name for name in names if not is_path_of_ours(name)) == []


def is_path_of_ours(name: str) -> bool:
    return any(f"/{file}".endswith(f"/{name}") for file in files_of_ours())


@cache
def files_of_ours() -> list[str]:
    return [
        file.relative_to(ROOT).as_posix()
        for room in ROOMS
        for file in (ROOT / room).rglob("*")
        if file.suffix in {".py", ".html", ".css"}
    ]


@pytest.mark.parametrize(("name", "there"), [("charts/trend.py", True), ("charts/nowhere.py", False)])
def test_a_path_that_is_not_there_is_found(name: str, there: bool) -> None:
    assert is_path_of_ours(name) is there


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("dashboard.regressions.decision.repair.is_repaired_by", True),
        ("workers.host.execution.experiment_executor.ExperimentExecutor.give_up", True),
        ("dashboard.regressions.decision.repair.is_mended", False),
        ("dashboard.nowhere", False),
    ],
)
def test_a_name_that_is_not_there_is_found(name: str, there: bool) -> None:
    assert is_there(name) is there


def test_few_modules_stand_between_a_run_and_an_alert() -> None:
    assert 0 < len(STATIONS) <= 15
    assert len(re.findall(r"^\| \d+ \|", ARCHITECTURE, re.MULTILINE)) == len(STATIONS)


@pytest.mark.parametrize(("module", "caller"), STATIONS)
def test_each_of_them_is_imported_by_its_caller(module: str, caller: str) -> None:
    """Directly, or by the package that it is offered by."""
    file = ROOT / (caller.replace(".", "/") + ".py")
    imported = {name for _, name in imported_names(file.read_text(), caller.rpartition(".")[0])}
    package = module.rpartition(".")[0]
    offered = package in imported and module in offered_modules(package)
    assert offered or any(name == module or name.startswith(f"{module}.") for name in imported)


def offered_modules(package: str) -> set[str]:
    """The modules whose names a package's `__init__` takes in."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    return {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}


def test_they_are_drawn_as_they_are_listed() -> None:
    drawing = ARCHITECTURE.partition("## From a stored run")[2].partition("```mermaid")[2].partition("```")[0]
    drawn = set(re.findall(r"\b[a-z_]+\b", re.sub(r"\(\[.*?\]\)", "", drawing)))
    named = {module.rpartition(".")[2] for module, _ in STATIONS}
    assert named == drawn - {"flowchart", "stored", "alert", "message"}


# What every Django project has, named as Django wants it.
DJANGO_OWN = frozenset({"__init__", "apps", "migrations", "settings", "urls", "wsgi"})


def test_every_package_of_the_site_is_named() -> None:
    folder = ROOT / "dashboard"
    there = {file.stem for file in folder.glob("*.py")} | {file.parent.name for file in folder.glob("*/*.py")}
    table = ARCHITECTURE.partition("## Within the site")[2].partition("## ")[0]
    rows = "\n".join(line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `"))
    named = re.findall(r"`dashboard/(\w+)(?:/|\.py)`", rows)
    assert sorted(named) == sorted(there - DJANGO_OWN)


def test_every_room_of_the_harness_is_named() -> None:
    package = ROOT / "trainers/harness/src/paceline"
    rooms = {file.parent.name for file in package.glob("*/__init__.py")}
    table = ARCHITECTURE.partition("## Within the harness")[2].partition("## ")[0]
    named = re.findall(r"`(\w+)(/?)`", table)
    assert {name for name, slash in named if slash} == rooms
    modules = {name for name, slash in named if not slash} - {package.name, "__init__"}
    assert modules == {file.stem for file in package.glob("*.py")} - {"__init__", "__main__"}


def test_the_layers_are_drawn_as_they_are_tested() -> None:
    drawn = re.findall(r'\["(\d): (.+?)"\]', ARCHITECTURE)
    layers = {int(number): set(re.findall(r"\w+", words)) for number, words in drawn}
    assert layers == {number: set(layer) for number, layer in enumerate(LAYERS, start=1)}
