from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path

import pytest
from paceline import claims, document
from paceline.claims import (
    Claim,
    ClaimResult,
    Estimate,
    Evidence,
    command,
    kept_results,
    table,
    unfinished,
)
from paceline.manifest.toml_table import ManifestError
from paceline.protocol import case_runner

from tests.harness.conftest import Project
from tests.workers.scripts import UNDISTURBED

SCRIPT = """
import argparse, os, paceline
parser = argparse.ArgumentParser()
parser.add_argument("--work", type=int, default=1)
parser.add_argument("--idle", action="store_true")
work = parser.parse_args().work
if work > 9:
    raise SystemExit("there is no compiler here")
for number in paceline.steps(range(10**6)):
    paceline.count("episodes", 2)
    with paceline.phase("learn"):
        for _ in range(work):
            sum(range(20000))
paceline.quality("score", work + int(os.environ["PACELINE_SEED"]))
"""

CLAIMS = """
document = "A plan"
[[claims]]
id = "less-work"
claim = "A third of the work is faster"
at_least = 1.2
before = { work = 6 }
after = { work = 2 }
equal_training = { before = { work = 4 }, after = { work = 2 } }
phase = "learn"
counter = "function_calls:learn"
[[claims]]
id = "learned"
claim = "What is learned is worth three times as much"
value = [3]
metric = "quality.score"
seeds = [0, 2, 6]
steps = 2
before = { work = 2 }
after = { work = 6 }
[[claims]]
id = "fewer-calls"
claim = "A third of the work takes a third of the calls"
value = [3]
metric = "function_calls:learn"
before = { work = 6 }
after = { work = 2 }
[[claims]]
id = "episodes"
claim = "Two episodes end in a step"
value = [2]
metric = "count.episodes"
unit = "episodes"
case = { work = 1 }
[[claims]]
id = "share"
claim = "Learning takes nearly all of the time"
value = [80, 100]
metric = "phase_share:learn"
factor = 100
unit = "%"
case = { work = 1 }
[[claims]]
id = "compiler"
claim = "Compiling helps"
before = { work = 1 }
after = { work = 10 }
[[claims]]
id = "cluster"
claim = "A cluster is 100 times faster"
value = [100]
untestable = "there is no cluster"
[[claims]]
id = "device"
claim = "A device is 20 times faster"
needs_cuda = true
before = { work = 1 }
after = { work = 1 }
"""


def parse_claim(line: str) -> claims.Claims:
    return claims.parse_claims(
        f'document = "A plan"\n[[claims]]\nid = "one"\nclaim = "It is fast"\n{line}', "claims.toml"
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "claims.toml: claims[0]: must have before and after, or case alone, or untestable"),
        ("before = {}", "claims.toml: claims[0]: must have before and after, or case alone, or untestable"),
        ("case = {}\nvalu = [2]", "claims.toml: claims[0].valu: is unknown"),
        ("case = {}\nvalue = 2", "claims.toml: claims[0].value: must be a list of finite numbers"),
        (
            "case = {}\nvalue = [5, 2]",
            "claims.toml: claims[0].value: must be a list of one number, or of the smallest and the largest",
        ),
        (
            'case = {}\nmetric = "troughput"',
            "claims.toml: claims[0].metric: 'troughput' is unknown, did you mean 'throughput'?",
        ),
        (
            'case = {}\nmetric = "phase_time"',
            "claims.toml: claims[0].metric: phase_time needs a phase, write phase_time:PHASE",
        ),
        (
            'case = {}\nphase = "act"',
            "claims.toml: claims[0].phase: is for claims that compare before and after",
        ),
        (
            'before = {}\nafter = {}\ndirection = "same"',
            "claims.toml: claims[0].value: must be the ratio up to which two sides count as the same",
        ),
        (
            'before = {}\nafter = {}\nunit = "s"',
            "claims.toml: claims[0].unit: and factor are for claims about one case",
        ),
        (
            "before = {}\nafter = {}\nequal_training = { before = {} }",
            "claims.toml: claims[0].equal_training: must have before and after",
        ),
        (
            "case = {}\nequal_training = { before = {}, after = {} }",
            "claims.toml: claims[0].equal_training: is for claims that compare before and after",
        ),
        (
            'case = {}\nmetric = "phase_share:act+"',
            "claims.toml: claims[0].metric: phase_share needs phases, write phase_share:PHASE+PHASE",
        ),
        ("case = {}\nseeds = [1, 1]", "claims.toml: claims[0].seeds: must be different integers"),
        (
            "case = { a = [1] }",
            "claims.toml: claims[0].case.a: must be a number of at most 64 bits, a boolean",
        ),
        (
            'untestable = "no device"\n[[claims]]\nid = "one"\nclaim = "Again"\nuntestable = "no device"',
            "claims.toml: claims[1].id: is 'one' a second time",
        ),
    ],
)
def test_a_wrong_claim_gets_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_claim(line)
    assert str(raised.value).startswith(sentence)


def test_a_claim_that_nobody_made_is_refused() -> None:
    with pytest.raises(ManifestError, match="claims: 'two' is unknown"):
        parse_claim("case = {}").chosen(["two"], "claims.toml")


EVIDENCE = Evidence("pairs", 4, 8, 1, "standard", "A processor, 2 cores", "2026-01-02")


def test_a_table_names_all_that_was_found() -> None:
    claim = Claim("one", "It is fast", 2, 5, counter="scalar_reads:push", before={}, after={})
    ratios = {"phase": Estimate(56, 50, 60), "equal_training": Estimate(1.05, 1.04, 1.06)}
    found = ClaimResult(
        claim, "smaller?", Estimate(1.14, 1.1, 1.2), counter=(768, 0), evidence=EVIDENCE, **ratios
    )
    row = table.CLAIMS.table([found]).splitlines()[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "It is fast",
        "2-5x",
        "1.14 [1.1, 1.2]x",
        "1.05 [1.04, 1.06]x",
        "56 [50, 60]x",
        "scalar_reads:push 768 to 0",
        "4 pairs, standard, 1 of 8 disturbed",
        "refuted: less than claimed?",
    ]
    assert "Measured on A processor, 2 cores, 2026-01-02" in table.table_notes([found])


def test_a_column_that_holds_nothing_is_left_out() -> None:
    claim = Claim("one", "It is fast", None, None, before={}, after={})
    rows = table.CLAIMS.table([ClaimResult(claim, "holds", Estimate(2, 2, 2))]).splitlines()
    assert [cell.strip() for cell in rows[0].strip("|").split("|")] == ["claim", "measured", "verdict"]


def test_results_are_kept_until_their_claim_changes(tmp_path: Path) -> None:
    claim = Claim("one", "It is fast", 2, 5, before={}, after={"fused": True})
    result = ClaimResult(claim, "holds", Estimate(2.5, 2.4, 2.6), counter=(3, 1), evidence=EVIDENCE)
    kept_results.store_results(tmp_path / "kept.json", [result])
    assert kept_results.load_results(tmp_path / "kept.json", [claim]) == {"one": result}
    changed = dataclasses.replace(claim, after={"fused": False})
    assert kept_results.load_results(tmp_path / "kept.json", [changed]) == {}


def test_a_file_that_holds_no_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("[1]")
    with pytest.raises(ManifestError, match=r"kept\.json: holds no results of claims"):
        kept_results.load_results(tmp_path / "kept.json", [])


def test_the_table_replaces_what_stands_between_the_markers(tmp_path: Path) -> None:
    form = table.CLAIMS
    readme, (first, last) = tmp_path / "README.md", form.markers
    readme.write_text(f"before\n{first}\nold\n{last}\nafter\n")
    form.check_markers(readme)
    form.insert(readme, "new")
    assert readme.read_text() == f"before\n{first}\n\nnew\n\n{last}\nafter\n"
    readme.write_text("none")
    with pytest.raises(ManifestError, match="has no lines"):
        form.check_markers(readme)


def test_claims_are_measured(project: Project) -> None:
    project.write(SCRIPT, counting_steps=5, steps=300)
    (project.folder / "claims.toml").write_text(CLAIMS)
    ended = project.call("claims", "tiny", "--pairs", "2", "--json", "claims.json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((project.folder / "claims.json").read_text())
    found = {row["id"]: row for row in rows}
    assert found["less-work"]["verdict"] == "holds?"
    assert (found["fewer-calls"]["verdict"], found["fewer-calls"]["measured"]) == ("holds", [3, 3, 3])
    assert found["less-work"]["counted"] == [6, 2]
    # Two pairs beside other tests: how the one lies to the other, noise decides.
    assert min(found["less-work"]["equal_training"][0], found["less-work"]["measured"][0]) > 1.2
    # Seeds 0, 2 and 6: 6 / 2, 8 / 4 and 12 / 8: the claim is one end of that, the truth may lie far from it.
    assert (found["learned"]["verdict"], found["learned"]["measured"]) == ("not known", [2, 1.5, 3])
    assert (found["learned"]["evidence"]["kind"], found["learned"]["evidence"]["samples"]) == ("seeds", 3)
    assert found["less-work"]["phase_measured"][0] > 1.2
    assert (found["episodes"]["verdict"], found["episodes"]["measured"][0]) == ("holds", 2)
    assert found["share"]["verdict"] == "holds"
    assert found["compiler"]["verdict"] == "not testable here: there is no compiler here"
    assert found["cluster"]["verdict"] == "not testable here: there is no cluster"
    assert "| A cluster is 100 times faster" in ended.stdout
    assert re.search(r"Measured on .+, \d+ cores?, \d{4}-\d\d-\d\d; standard", ended.stdout)
    again = project.call("claims", "tiny", "--missing", "--json", "claims.json")
    assert (again.returncode, again.stdout) == (0, ended.stdout)
    assert "round" not in again.stderr
    readme = project.folder / "README.md"
    readme.write_text("\n".join(table.CLAIMS.markers))
    project.call(
        "claims",
        "tiny",
        "--claim",
        "episodes",
        "--json",
        "other.json",
        "--readme",
        "README.md",
        "--pairs",
        "1",
    )
    assert readme.read_text().count("| not measured yet |") == CLAIMS.count("[[claims]]") - 1
    told = project.call("claims", "tiny", "--no-measuring", "--json", "claims.json")
    assert (told.returncode, told.stdout, told.stderr) == (0, ended.stdout, "")


def test_an_interrupted_call_goes_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    started = project.folder / "started"
    script = f"{UNDISTURBED}\nopen({str(started)!r}, 'a').write('.')\n{SCRIPT}"
    project.write(script, counting_steps=5, steps=20)
    chosen = CLAIMS[: CLAIMS.index('[[claims]]\nid = "learned"')]
    (project.folder / "claims.toml").write_text(chosen)
    monkeypatch.chdir(project.folder)
    # Other tests beside it are no reason to measure again.
    monkeypatch.setattr(case_runner, "CONTENTION_SHARE", 1.0)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    arguments = parser.parse_args(["tiny", "--pairs", "2", "--json", "claims.json"])

    def interrupt_second_round(message: str) -> None:
        if message.startswith("round 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command.run_claims(arguments, interrupt_second_round)
    # One that tells how long it takes; work=6, work=2 and work=4 side by side, two of these counted too.
    assert len(started.read_text()) == 1 + 3 + 2
    kept = project.folder / "claims.unfinished.jsonl"
    with kept.open("a") as file:
        file.write('\n{"conditions": "cut o')
    command.run_claims(arguments, lambda _: None)
    assert len(started.read_text()) == (1 + 3 + 2) + (1 + 3)
    (row,) = json.loads((project.folder / "claims.json").read_text())
    assert (row["evidence"]["samples"], row["counted"]) == (2, [6, 2])
    assert not kept.exists()


def test_blocks_of_other_code_are_measured_anew(project: Project, measured: dict[str, object]) -> None:
    side = unfinished.SideMeasurement(document.read_document(json.dumps(measured)), is_counted=True)
    path = project.folder / "kept.jsonl"
    kept = unfinished.UnfinishedMeasurements(path, "today's code")
    for name in ("first", "second"):
        kept.keep_block(name, [side])
    assert unfinished.UnfinishedMeasurements(path, "other code").find_block("first") is None
    today = unfinished.UnfinishedMeasurements(path, "today's code")
    assert today.find_block("first") == [side]
    today.forget_used()
    again = unfinished.UnfinishedMeasurements(path, "today's code")
    assert (again.find_block("first"), again.find_block("second")) == (None, [side])


def test_quick_windows_leave_a_claim_about_a_sweep_unmeasured(project: Project) -> None:
    project.write(SCRIPT, scaling={"parameter": "work", "values": [1, 2, 3, 4]})
    claim = '[[claims]]\nid = "growth"\nclaim = "It grows"\nmetric = "scaling_exponent"\ncase = {}\n'
    (project.folder / "claims.toml").write_text(f'document = "A plan"\n{claim}')
    ended = project.call("claims", "tiny", "--quick", "--json", "claims.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("| claim | document |")
    assert not (project.folder / "claims.json").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("claims", "tiny"), "paceline: {folder}/claims.toml: can't be read"),
        (("claims", "huge"), "paceline: {folder}/paceline.toml: has no benchmark 'huge', it has tiny"),
        (("claims", "tiny", "--pairs", "0"), "paceline: --pairs is 0, must be between 1 and 50"),
        (("claims", "tiny", "--missing"), "paceline: --missing needs --json"),
        (("claims", "tiny", "--no-measuring"), "paceline: --no-measuring needs --json"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(
    project: Project, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = project.call(*arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(sentence.format(folder=project.folder.resolve()))
