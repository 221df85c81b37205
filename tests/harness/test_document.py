import copy
import errno
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from paceline import document, schema
from paceline.command_line.command_output import write_and_show
from paceline.document import DocumentError

GOLDEN = Path(__file__).parent.parent / "golden"
Raw = dict[str, Any]


@pytest.fixture
def golden() -> Raw:
    """A document that was really measured, of the newest format."""
    raw: Raw = json.loads((GOLDEN / "paceline.document-1.json").read_text())
    return raw


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("paceline.document-*.json")), ids=lambda path: path.stem)
def test_every_format_stays_readable(path: Path) -> None:
    found = document.read_document(path.read_bytes())
    throughput = found.metric("throughput")
    assert throughput is not None
    assert throughput.unit == "steps/s"
    assert found.phases
    assert found.profile is not None


def test_the_golden_document_keeps_its_meaning(golden: Raw) -> None:
    found = document.read_document(json.dumps(golden))
    calls = found.metric("function_calls", "learn/optimizer")
    assert calls is not None
    assert (calls.value, calls.exact) == (232.0, True)
    assert found.benchmark.case == "batch=64"
    assert found.raw == golden


def test_an_older_document_has_none_of_the_additions(golden: Raw) -> None:
    found = document.read_document(json.dumps(golden))
    assert (found.processes, found.scaling, found.limits, found.job) == ((), None, (), None)


@pytest.fixture
def complete() -> Raw:
    """A document with every member that may be missing."""
    raw: Raw = json.loads((GOLDEN / "paceline.document-1-complete.json").read_text())
    return raw


def test_the_complete_document_keeps_its_meaning(complete: Raw) -> None:
    found = document.read_document(json.dumps(complete))
    assert found.scaling is not None
    assert found.job is not None
    assert found.scaling.points[0].seconds < found.scaling.points[3].seconds
    assert found.metric("scaling_exponent") is not None
    assert {limit.crossed for limit in found.limits} == {True, False, None}
    assert "main" in {process.name for process in found.processes}
    assert {"gc", "affinity", "variables"} <= set(found.protocol)


@pytest.mark.parametrize("name", ["complete", "measured"])
def test_a_document_of_today_has_every_optional_member(name: str) -> None:
    raw = json.loads((GOLDEN / f"paceline.document-1-{name}.json").read_text())
    published = schema.load_schema()
    for member, described in ((raw, published), (raw["protocol"], published["properties"]["protocol"])):
        assert set(member) == set(described["properties"])
    assert raw["profile"]["stacks"]


def refused_document(raw: Raw, change: Callable[[Raw], object]) -> DocumentError:
    broken = copy.deepcopy(raw)
    change(broken)
    with pytest.raises(DocumentError) as caught:
        document.read_document(json.dumps(broken))
    return caught.value


REFUSED: dict[str, Callable[[Raw], object]] = {
    "format: must be 'paceline.document/1'": lambda raw: raw.update(format="paceline.document/9"),
    "created: is missing": lambda raw: raw.pop("created"),
    "created: has characters or a form": lambda raw: raw.update(created="9999-99-99T00:00:00Z"),
    "surprise: is unknown": lambda raw: raw.update(surprise=1),
    "metrics[1].unit: is missing": lambda raw: raw["metrics"][1].pop("unit"),
    "metrics[0].unit: is 'steps', must be 'steps/s'": lambda raw: raw["metrics"][0].update(unit="steps"),
    "metrics[0].value: must be a finite number": lambda raw: raw["metrics"][0].update(value=math.nan),
    "telemetry[0].values[2]: must be at least -1e+100": lambda raw: raw["telemetry"][0]["values"].insert(
        2, -2e100
    ),
    "metrics[0].samples[1]: must be a finite": lambda raw: raw["metrics"][0]["samples"].insert(1, math.inf),
    "metrics[0].value: must be a finite number ": lambda raw: raw["metrics"][0].update(value=10**400),
    "metrics[0].exact: must be true or false": lambda raw: raw["metrics"][0].update(exact=1),
    "metrics[0].name: 'pace' is unknown": lambda raw: raw["metrics"][0].update(name="pace"),
    "metrics: throughput is missing": lambda raw: raw["metrics"].pop(0),
    "stands twice": lambda raw: raw["metrics"].append(raw["metrics"][0]),
    "metrics[0].better: is 'lower', must be 'higher'": lambda raw: raw["metrics"][0].update(better="lower"),
    "metrics: must have at most 5000 items": lambda raw: raw.update(metrics=(raw["metrics"] * 200)[:5001]),
    "repetitions: must have at least 1 items": lambda raw: raw.update(repetitions=[]),
    "repetitions[1].index: is 5, must be 1": lambda raw: raw["repetitions"][1].update(index=5),
    "repetitions[0].step_times.histogram.counts: must": lambda raw: raw["repetitions"][0]["step_times"][
        "histogram"
    ]["counts"].pop(),
    "telemetry[0].repetition: names a repetition": lambda raw: raw["telemetry"][0].update(repetition=7),
    "telemetry[0].values[3]: must be a finite number": lambda raw: raw["telemetry"][0]["values"].insert(
        3, "1"
    ),
    "profile.functions[0].self: must be at least 0": lambda raw: raw["profile"]["functions"][0].update(
        self=-1
    ),
    "benchmark.name: has characters": lambda raw: raw["benchmark"].update(name="a\0b"),
    "benchmark.params.batch: must be a string": lambda raw: raw["benchmark"]["params"].update(batch=[]),
    "phases[0].path: has characters": lambda raw: raw["phases"][0].update(path="learn\n"),
    "phases[1].thread: has characters": lambda raw: raw["phases"][1].update(thread="\u202eniam"),
    "metrics[0].value: must be at most 1e+100": lambda raw: raw["metrics"][0].update(value=1e101),
    "telemetry[0].start: must be at most 1000000000": lambda raw: raw["telemetry"][0].update(start=1e299),
    "warnings[0].message: has characters": lambda raw: raw["warnings"][0].update(message="\ud800"),
}


def operation_phase(raw: Raw) -> Raw:
    found: Raw = raw["profile"]["operations"][0]["phases"][1]
    return found


WRONG_ADDITIONS: dict[str, Callable[[Raw], object]] = {
    "processes[0].repetition: names a repetition": lambda raw: raw["processes"][0].update(repetition=9),
    "processes[1].count: must be at least 1": lambda raw: raw["processes"][1].update(count=0),
    "limits[1].metric: 'pace' is unknown": lambda raw: raw["limits"][1].update(metric="pace"),
    "limits[0].crossed: must be true or false": lambda raw: raw["limits"][0].update(crossed="no"),
    "scaling.exponents[0].name: 'power' is": lambda raw: raw["scaling"]["exponents"][0].update(name="power"),
    "scaling.exponents[0].value: must be at most 100": lambda raw: raw["scaling"]["exponents"][0].update(
        value=5000
    ),
    "scaling.points[0].seconds: is missing": lambda raw: raw["scaling"]["points"][0].pop("seconds"),
    "job.from: must be one of rate, scaling": lambda raw: raw["job"].update({"from": "hope"}),
    "profile.operations[0].phases[1].count: is": lambda raw: operation_phase(raw).pop("count"),
    "protocol.gc: must be one of default": lambda raw: raw["protocol"].update(gc="off"),
}


@pytest.mark.parametrize("sentence", WRONG_ADDITIONS)
def test_a_broken_addition_is_refused_with_its_path(complete: Raw, sentence: str) -> None:
    assert sentence in str(refused_document(complete, WRONG_ADDITIONS[sentence]))


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_broken_document_is_refused_with_its_path(golden: Raw, sentence: str) -> None:
    assert sentence.strip() in str(refused_document(golden, REFUSED[sentence]))


def test_the_error_names_the_path_apart(golden: Raw) -> None:
    error = refused_document(golden, lambda raw: raw["phases"][2].pop("thread"))
    assert (error.path, error.sentence) == ("phases[2].thread", "is missing")


# They take a pattern's `$` for Python's, which stands before a last line break as well.
OURS_ALONE = ("[0].name", "nan", "phases[0].path")


@pytest.mark.parametrize("sentence", [s for s in REFUSED if not any(part in s for part in OURS_ALONE)])
def test_our_reader_agrees_with_jsonschema(golden: Raw, sentence: str) -> None:
    broken = copy.deepcopy(golden)
    REFUSED[sentence](broken)
    ours = schema.first_problem(broken, schema.load_schema()) is None
    theirs = jsonschema.Draft202012Validator(schema.load_schema()).is_valid(broken)
    # They take numbers that aren't finite; JSON has none, so nobody else meets them.
    assert ours == theirs or "finite" in sentence


@pytest.mark.parametrize("edges", [[0, 0], [0, 5e-324], [2, 1], [1, 1 + 1e-17]])
def test_the_edges_of_a_histogram_ascend(golden: Raw, edges: list[float]) -> None:
    counted = {"edges": edges, "counts": [5]}
    error = refused_document(
        golden, lambda raw: raw["repetitions"][0]["step_times"].update(histogram=counted)
    )
    assert str(error) == "repetitions[0].step_times.histogram.edges: must ascend"


def test_a_date_is_one_of_the_calendar(golden: Raw) -> None:
    error = refused_document(golden, lambda raw: raw.update(created="2026-02-30T00:00:00Z"))
    assert str(error).startswith("created: is '2026-02-30T00:00:00Z', which is no date")


def test_telemetry_is_no_more_than_a_page_can_show(golden: Raw) -> None:
    row = {**golden["telemetry"][0], "values": [1.5] * 30_001}
    rows = [{**row, "channel": f"c{number}"} for number in range(10)]
    error = refused_document(golden, lambda raw: raw.update(telemetry=rows))
    assert str(error) == "telemetry: has 300010 readings, at most 300000 are allowed"
    many = [{**row, "channel": f"c{number}", "values": []} for number in range(201)]
    error = refused_document(golden, lambda raw: raw.update(telemetry=many))
    assert "has 201 channels of repetition 0, at most 200 are allowed" in str(error)


def test_what_nearly_is_zero_is_zero(golden: Raw) -> None:
    golden["metrics"][0]["value"] = 5e-324
    assert document.read_document(json.dumps(golden)).metrics[0].value == 0


NOT_JSON = {
    "": "is not valid JSON",
    "[]": "must be an object",
    '{"format": 1, "format": 2}': "member 'format' stands twice",
    "[" * 100_000: "is not valid JSON",
    '{"a": ' + "9" * 5000 + "}": "is not valid JSON",
    " " * (16 * 2**20 + 1): "at most 16777216 are allowed",
}


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: text[:20])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=NOT_JSON[text]):
        document.read_document(text)


def test_a_repeated_member_is_found_among_many() -> None:
    """Each name compared with each other, that would take minutes."""
    members = ", ".join(f'"{number}": 0' for number in [*range(300_000), 299_999])
    with pytest.raises(DocumentError, match="member '299999' stands twice"):
        document.read_document(f"{{{members}}}")


def test_a_long_name_is_not_repeated_whole() -> None:
    name = "x" * 10_000
    with pytest.raises(DocumentError) as refused:
        document.read_document(f'{{"{name}": 1, "{name}": 2}}')
    assert len(str(refused.value)) < 300


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(DocumentError, match="is not valid JSON"):
        document.read_document(b'{"format": "\xff\xfe"}')


def test_a_document_that_cannot_be_written_names_its_file_and_leaves_nothing(
    golden: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_disk(partial: Path, data: bytes) -> None:
        partial.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        document.write_document(golden, tmp_path / "out.json")
    assert caught.value.filename == str(tmp_path / "out.json")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_shown(
    golden: Raw, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError):
        write_and_show(golden, tmp_path / "gone" / "out.json", lambda *_: None)
    assert "step_time" in capsys.readouterr().out


def test_writing_checks_first_and_renames(golden: Raw, tmp_path: Path) -> None:
    document.write_document(golden, tmp_path / "out.json")
    with pytest.raises(DocumentError):
        document.write_document({**golden, "format": "x"}, tmp_path / "bad.json")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
