import argparse
import re
from pathlib import Path

import paceline
from paceline import manifest, metrics, schema
from paceline.__main__ import _build_parser

README = Path(paceline.__file__).parents[2] / "README.md"
WARNINGS = Path(paceline.__file__).parent / "run_warnings"


def metric_table() -> str:
    rows = [*metrics.METRICS.values(), *metrics._REPORTED.values()]
    lines = [
        f"| `{row.name}` | {row.unit} | {row.better} | {row.kind}{', per phase' if row.per_phase else ''} "
        f"| {row.description} |"
        for row in rows
    ]
    return "\n".join(["| metric | unit | better | kind | meaning |", "|---|---|---|---|---|", *lines])


def test_the_metric_table_is_the_codes() -> None:
    text = README.read_text()
    written = re.search(r"<!-- metrics.*?-->\n(.*?)\n<!-- end", text, re.DOTALL)
    assert written is not None
    assert written.group(1) == metric_table()


def test_every_warning_is_documented() -> None:
    source = "".join(path.read_text() for path in WARNINGS.glob("*.py"))
    codes = re.findall(r'yield make_warning\(\s*"(\w+)"', source)
    assert len(set(codes)) == 35
    assert [code for code in codes if f"`{code}`" not in README.read_text()] == []


def test_every_key_of_the_manifest_is_documented() -> None:
    text = README.read_text()
    documented = set(re.findall(r"^\| `(\w+)` \| ", text.partition("## The manifest")[2], re.MULTILINE))
    fields = {*manifest.Benchmark.__dataclass_fields__, *manifest.Environment.__dataclass_fields__}
    assert fields - {"name", "launcher"} <= documented


def test_the_published_limits_are_the_schemas() -> None:
    text, published = README.read_text(), schema.load_schema()
    limits = {name: published["properties"][name]["maxItems"] for name in ("metrics", "phases", "telemetry")}
    assert limits == {"metrics": 5000, "phases": 500, "telemetry": 2000}
    assert "5,000 metrics, 500 phases, 200 functions" in text
    assert published["$defs"]["channel"]["properties"]["values"]["maxItems"] == 36_000


def test_headlines_are_metrics_with_room_for_one_more() -> None:
    assert set(metrics.DEFAULT_HEADLINE) <= set(metrics.METRICS)
    assert len(metrics.DEFAULT_HEADLINE) < metrics.HEADLINE_LIMIT


def test_reported_names_are_described() -> None:
    found = metrics.describe_metric("quality.score")
    assert found is not None
    assert (found.name, found.unit, found.better) == ("quality.score", "1", "higher")
    assert metrics.describe_metric("quality.") is None
    assert metrics.describe_metric("speed") is None


def test_every_option_of_a_command_stands_in_its_row() -> None:
    text = README.read_text()
    (commands,) = (
        action.choices
        for action in _build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    missing = {
        f"{name} {option}"
        for name, parser in commands.items()
        for row in re.findall(rf"^\| `python -m paceline {name}\b.*$", text, re.MULTILINE) or [""]
        for option in parser._option_string_actions
        if option.startswith("--") and option not in ("--help", "--module") and option not in row
    }
    assert missing == set()
