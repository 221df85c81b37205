"""Claims about toggles: what they must say, how they are measured together, and their table."""

from __future__ import annotations

import json

import pytest
from paceline import claims
from paceline.claims import Claim, ClaimResult, Estimate, rounds, table
from paceline.manifest.toml_table import ManifestError

from tests.harness.claims.test_claims import SCRIPT
from tests.harness.conftest import Project

OFF, ON = "before = { work = 6, idle = false }", "after = { work = 6 }"

CLAIMS = """
document = "A plan"
[[claims]]
id = "less-work"
toggle = "work"
claim = "A third of the work is 3 times faster"
value = [3]
before = { work = 6 }
after = { work = 2 }
phase = "learn"
counter = "function_calls:learn"
[[claims]]
id = "idle"
toggle = "idle"
claim = "Not in the document: an argument that does nothing"
before = { work = 2, idle = true }
after = { work = 2 }
counter = "function_calls"
[[claims]]
id = "compiler"
toggle = "work"
claim = "Compiling helps"
before = { work = 2 }
after = { work = 10 }
phase = "learn"
[[claims]]
id = "episodes"
claim = "Two episodes end in a step"
metric = "count.episodes"
case = { work = 1 }
"""


def toggle_claim(key: str, off: dict[str, int], on: dict[str, int], **others: int) -> Claim:
    return Claim(key, "It is fast", None, None, toggle=key, before=off, after=on, **others)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('toggle = "work"', "toggle: is 'work', but before and after differ in idle"),
        ('toggle = "idle"', "toggle: needs phase or counter: where it is to be seen"),
        ('toggle = "idle"\nmetric = "step_time"', "metric: must be throughput for a claim with a toggle"),
    ],
)
def test_a_claim_about_a_toggle_is_about_it_alone(text: str, sentence: str) -> None:
    head = f'document = "A plan"\n[[claims]]\nid = "one"\nclaim = "It is fast"\n{OFF}\n{ON}\n'
    with pytest.raises(ManifestError) as raised:
        claims.parse_claims(head + text, "claims.toml")
    assert str(raised.value) == f"claims.toml: claims[0].{sentence}"


def test_a_toggle_that_cannot_be_tested_keeps_its_name() -> None:
    head = 'document = "A plan"\n[[claims]]\nid = "one"\nclaim = "It is fast"\n'
    found = claims.parse_claims(head + 'toggle = "amp"\nuntestable = "no device"', "claims.toml")
    assert found.chosen([], "claims.toml", toggles=True)[0].toggle == "amp"
    with pytest.raises(ManifestError, match=r"^claims\.toml: has no claim but about toggles$"):
        found.chosen([], "claims.toml", toggles=False)


def test_a_file_without_toggles_is_told() -> None:
    text = 'document = "A plan"\n[[claims]]\nid = "one"\nclaim = "It is fast"\nuntestable = "no"'
    assert len(claims.parse_claims(text, "claims.toml").chosen([], "claims.toml", toggles=False)) == 1
    with pytest.raises(ManifestError, match=r"^claims\.toml: has no claim about a toggle$"):
        claims.parse_claims(text, "claims.toml").chosen([], "claims.toml", toggles=True)


def test_comparisons_are_grouped_by_the_side_that_most_share() -> None:
    first, second = toggle_claim("a", {"a": 0}, {}), toggle_claim("b", {}, {"b": 1})
    alone, otherwise = toggle_claim("c", {"c": 0}, {"c": 1}), toggle_claim("d", {"d": 0}, {}, steps=9)
    comparisons = rounds.timed_comparisons([first, alone, second, otherwise, first])
    found = rounds.group_by_shared_case(comparisons)
    keys = [[dict(group.own_side(comparison)) for comparison in group.comparisons] for group in found]
    assert keys == [[{"a": 0}, {"b": 1}], [{"c": 1}], [{}]]


@pytest.mark.parametrize(
    ("loop", "phase", "counter", "seen"),
    [
        ((1.3, 1.2, 1.4), (2.0, 1.9, 2.1), (5.0, 3.0), "loop, phase, counter"),
        ((1.0, 0.9, 1.1), (0.8, 0.7, 0.9), (5.0, 5.0), "phase"),
        ((1.01, 1.005, 1.015), (1.1, 0.9, 1.2), (5.0, 5.0), "nothing"),
    ],
)
def test_where_a_toggle_is_seen(
    loop: tuple[float, float, float],
    phase: tuple[float, float, float],
    counter: tuple[float, float],
    seen: str,
) -> None:
    measured, in_phase = Estimate(*loop), Estimate(*phase)
    result = ClaimResult(toggle_claim("a", {"a": 0}, {}), "holds", measured, phase=in_phase, counter=counter)
    assert table.effect_location(result) == seen


def test_toggles_are_measured_together(project: Project) -> None:
    project.write(SCRIPT, counting_steps=5, steps=300)
    (project.folder / "claims.toml").write_text(CLAIMS)
    (project.folder / "README.md").write_text("\n".join(table.TOGGLES.markers))
    ended = project.call(
        "claims", "tiny", "--toggles", "--pairs", "2", "--json", "claims.json", "--readme", "README.md"
    )
    assert ended.returncode == 0, ended.stderr
    assert "paceline: 10 timed processes and 3 that count: about 1 minute\n" in ended.stderr
    rows = json.loads((project.folder / "claims.json").read_text())[:2]
    found = {row["toggle"]: row for row in rows}
    assert found["work"]["seen"] == "loop, phase, counter"
    assert (found["work"]["counted"], found["idle"]["counted"][0]) == ([6, 2], found["idle"]["counted"][1])
    rows = [line for line in (project.folder / "README.md").read_text().splitlines() if line[:1] == "|"]
    assert rows[0].split("|")[1].strip() == "toggle"
    assert rows[-1].split("|")[-2].strip() == "not testable here: there is no compiler here"
    assert len(rows) == 5


@pytest.mark.parametrize("option", ["--toggle", "--quic", "--pair"])
def test_half_an_option_is_refused(project: Project, option: str) -> None:
    ended = project.call("claims", "tiny", option, "2")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"paceline: unrecognized arguments: {option}")
