from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from dashboard.models import Change, Point, Project, Regression, Run, Series, SeriesLatest
from tests.dashboard import factories
from tests.dashboard.commands.conftest import Manage
from tests.dashboard.conftest import Repository

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, tzinfo=UTC)
HEADER = "commit,date,benchmark,value,unit"


def run_import(path: Path, slug: str = "old", **options: Any) -> str:
    output = StringIO()
    form = "csv" if path.suffix == ".csv" else "asv"
    call_command("import_results", slug, str(path), format=form, create=True, stdout=output, **options)
    return output.getvalue()


def write_csv(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "values.csv"
    path.write_text("\n".join([header, *rows]))
    return path


def write_history(folder: Path, values: list[float]) -> Path:
    days = [(START + timedelta(days=position)).date() for position in range(len(values))]
    rows = [f"c{position},{days[position]},train,{value},ms" for position, value in enumerate(values)]
    return write_csv(folder, *rows)


STEP = factories.noisy_levels((30, 10.0), (20, 14.0))


def test_a_table_becomes_series_that_are_judged(tmp_path: Path) -> None:
    printed = run_import(write_history(tmp_path, STEP))
    assert "50 values of 50 commits are new" in printed
    series = Series.objects.get()
    assert (str(series.case), series.metric.name, series.metric.unit) == ("train", "step_time", "s")
    assert series.headline
    change = Change.objects.get()
    assert (change.first_bad.hash, change.direction) == ("c30", "regression")
    assert Regression.objects.get().change_percent == pytest.approx(40, abs=3)
    assert SeriesLatest.objects.get().value == pytest.approx(STEP[-1] / 1000)


def test_a_second_import_changes_nothing(tmp_path: Path) -> None:
    path = write_history(tmp_path, STEP)
    run_import(path)
    before = list(Point.objects.order_by("pk").values()), list(Change.objects.values())
    assert "0 values of 50 commits are new, 0 corrected, 50 were there already" in run_import(path)
    assert (list(Point.objects.order_by("pk").values()), list(Change.objects.values())) == before


def test_judging_an_imported_history_again_finds_the_same(tmp_path: Path) -> None:
    run_import(write_history(tmp_path, STEP))
    before = list(Change.objects.values()), list(Regression.objects.values_list("pk", "first_bad", "ratio"))
    output = StringIO()
    call_command("redetect", "old", stdout=output)
    assert output.getvalue().startswith(
        "Changes: 0 found, 0 moved to another commit, 0 of a new size, 1 kept"
    )
    after = list(Change.objects.values()), list(Regression.objects.values_list("pk", "first_bad", "ratio"))
    assert after == before


def test_older_commits_are_put_before_those_that_are_there(tmp_path: Path) -> None:
    run_import(write_csv(tmp_path, "b,2026-02-02,train,2,s"))
    run_import(write_csv(tmp_path, "a,2026-02-01,train,1,s", "b,2026-02-02,train,3,s"))
    points = Point.objects.order_by("position").values_list("run__commit__hash", "position", "value")
    assert list(points) == [("a", 0, 1.0), ("b", 1, 3.0)]
    assert SeriesLatest.objects.get().recent == [1.0, 3.0]


def test_parameters_make_cases_and_repetitions_make_samples(tmp_path: Path) -> None:
    header = "commit,date,benchmark,value,metric,better,param.batch,repetition,pool,branch"
    rows = [
        f"a,2026-02-01T10:00:00+01:00,train,{value},score,higher,64,{repetition},gpu,"
        for repetition, value in enumerate("123")
    ]
    run_import(write_csv(tmp_path, *rows, header=header))
    point = Point.objects.select_related("series__configuration", "series__metric").get()
    assert (point.value, point.samples) == (2.0, [1.0, 2.0, 3.0])
    assert point.series.case.params == {"batch": 64}
    metric = point.series.metric
    assert (metric.name, metric.better, point.series.pool.name) == ("gauge.score", "higher", "gpu")


@pytest.mark.parametrize(
    ("header", "row", "sentence"),
    [
        (HEADER, "a,yesterday,train,1,s", "2: date is 'yesterday'"),
        (HEADER, "a,2026-02-01,train,nan,s", "2: value is 'nan', not a finite number"),
        (HEADER, "a b,2026-02-01,train,1,s", "2: commit is 'a b'"),
        (HEADER, "a,2026-02-01,train,1e306,h", "2: value is '1e306', not a finite number"),
        (HEADER, "a,2026-02-01,,1,s", "2: benchmark has 0 characters"),
        (HEADER, "a,2026-02-01,train,1", "2: unit doesn't fit: the row has 4 fields"),
        (HEADER, 'a,2026-02-01,"train,1,s', "2: unexpected end of data"),
        (
            HEADER + ",betr",
            "a,2026-02-01,train,1,s,",
            "1: betr is no column that is known (did you mean better?)",
        ),
        (HEADER + ",metric", "a,2026-02-01,train,1,s,peak_memory", "2: unit is 's', but peak_memory is"),
        ("commit,date,value", "a,2026-02-01,1", "1: benchmark is missing"),
        (HEADER, "a,2026-02-01,train,1,s\na,2026-02-01,train,2,s", "3: value of step_time stands in line 2"),
        (
            HEADER,
            "a,2026-02-01,train,1,s\na,2026-02-02,other,2,s",
            "3: date of commit a is another one in line 2",
        ),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_stored(
    tmp_path: Path, header: str, row: str, sentence: str
) -> None:
    path = write_csv(tmp_path, *row.splitlines(), header=header)
    with pytest.raises(CommandError) as refused:
        run_import(path)
    assert str(refused.value).startswith(f"{path}:{sentence}")
    assert not Project.objects.exists()


def test_git_places_the_commits_that_it_knows(
    tracked: Project, repository: Repository, tmp_path: Path
) -> None:
    second = repository.git("rev-parse", "HEAD")
    rows = [f"{second[:12]},2020-01-01,train,1,s", "abcdef1234,2020-01-02,train,2,s"]
    printed = run_import(write_csv(tmp_path, *rows), tracked.slug)
    assert "1 commit isn't in the repository" in printed
    places = Run.objects.order_by("pk").values_list("commit__hash", "commit__branch", "commit__position")
    assert list(places) == [(second, "main", 1), ("abcdef1234", "(detached)", 0)]


def test_another_projects_history_is_refused(tracked: Project, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="knows none of the 1 commits"):
        run_import(write_csv(tmp_path, "abcdef1234,2020-01-01,train,1,s"), tracked.slug)
    assert not Run.objects.exists()


def test_an_imported_runs_pages_can_be_looked_at(tmp_path: Path, client: Client) -> None:
    run_import(write_history(tmp_path, STEP))
    run, series, regression = Run.objects.first(), Series.objects.get(), Regression.objects.get()
    for row in (run, series, regression, Project.objects.get()):
        assert row is not None
        assert client.get(row.get_absolute_url()).status_code == 200


def test_an_imported_runs_page_shows_its_values(tmp_path: Path, client: Client) -> None:
    run_import(write_csv(tmp_path, "a,2026-02-01,train,12,ms"))
    text = client.get(Run.objects.get().get_absolute_url()).content.decode()
    assert "Another tool measured this" in text
    assert "12.0 ms" in text or "12 ms" in text
    assert "Measure it by hand" not in text


def test_wrong_arguments_end_with_one_sentence(manage_here: Manage, tmp_path: Path) -> None:
    for arguments in (["--format", "xml", "x"], ["--format", "csv", str(tmp_path / "none.csv")]):
        done = manage_here("import_results", "old", "--create", *arguments)
        assert done.returncode == 1
        assert done.stderr.strip().count("\n") == 0


def write_asv_results(folder: Path, version: int = 2) -> Path:
    """A results folder of asv: a plain and a parametrized benchmark at two commits."""
    machine = folder / "results/box"
    machine.mkdir(parents=True)
    (machine / "machine.json").write_text('{"machine": "box", "version": 1}')
    params = [["'a'", "'b'"], ["1", "2"]]
    index = {
        "suite.time_loop": {"type": "time", "unit": "seconds", "params": [], "version": "v2"},
        "suite.peakmem_it": {"type": "peakmemory", "unit": "bytes", "params": [], "version": "1"},
        "suite.track_rows": {
            "type": "track", "unit": "rows", "params": params, "param_names": ["how", "n"], "version": "1",
        },
        "version": 2,
    }  # fmt: skip
    (folder / "results/benchmarks.json").write_text(json.dumps(index))
    for position, name in enumerate(("aaaaaaaa11", "bbbbbbbb22")):
        body: dict[str, Any] = {
            "commit_hash": name,
            "date": int((START + timedelta(days=position)).timestamp() * 1000),
            "params": {"machine": "box", "cpu": "Fast", "ram": "65GB", "num_cpu": "8"},
            "python": "3.11",
            "version": version,
        }
        plain, peak, many = 0.5 + position, 2e6, [1.0, None, float("nan"), 4.0]
        if version == 1:
            body["results"] = {
                "suite.time_loop": plain,
                "suite.peakmem_it": {"result": [peak], "params": [], "stats": [{"ci_99": [1e6, 3e6]}]},
                "suite.track_rows": {"result": many, "params": params},
                "suite.gone": 1.0,
            }
            body["benchmark_version"] = {"suite.time_loop": "v2"}
        else:
            body["env_name"] = "py3.11-torch"
            body["result_columns"] = [
                "result",
                "params",
                "version",
                "started_at",
                "stats_ci_99_a",
                "stats_ci_99_b",
            ]
            body["results"] = {
                "suite.time_loop": [[plain], [], "v2", body["date"] + 5],
                "suite.peakmem_it": [[peak], [], "1", None, [1e6], [3e6]],
                "suite.track_rows": [many, params, "1"],
                "suite.gone": [[1.0], []],
            }
        (machine / f"{name[:8]}-py3.11-torch.json").write_text(json.dumps(body))
    return folder / "results"


@pytest.mark.parametrize("version", [1, 2])
def test_both_formats_of_asv_are_read(tmp_path: Path, version: int) -> None:
    printed = run_import(write_asv_results(tmp_path, version))
    assert "8 values of 2 commits are new" in printed
    assert "4 failed or skipped" in printed
    assert "2 of benchmarks that are no longer there" in printed
    stored = {
        (str(row.case), row.metric.name, row.metric.unit, row.pool.name)
        for row in Series.objects.select_related("configuration", "metric")
    }
    pool = "box-py3_11-torch"
    assert stored == {
        ("suite.time_loop", "step_time", "s", pool),
        ("suite.peakmem_it", "peak_memory", "bytes", pool),
        ("suite.track_rows[how=a,n=1]", "gauge.rows", "rows", pool),
        ("suite.track_rows[how=b,n=2]", "gauge.rows", "rows", pool),
    }
    peak = Point.objects.filter(series__metric__name="peak_memory").first()
    assert peak is not None
    assert (peak.low, peak.high, peak.position) == (1e6, 3e6, 0)
    assert peak.run.fingerprint["cpu_count"] == 8
    assert peak.run.environment is not None
    assert peak.run.environment.values["python"] == "3.11"


def test_results_of_an_earlier_version_of_a_benchmark_are_left_out(tmp_path: Path) -> None:
    folder = write_asv_results(tmp_path)
    index = json.loads((folder / "benchmarks.json").read_text())
    index["suite.time_loop"]["version"] = "v3"
    (folder / "benchmarks.json").write_text(json.dumps(index))
    assert "2 of earlier versions of their benchmark" in run_import(folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 3}, "version is 3, formats 1 and 2"),
        ({"commit_hash": "../x"}, "commit_hash is '../x', not a hash"),
        ({"results": [1]}, "doesn't look like a result of asv"),
        ({"date": None}, "doesn't look like a result of asv"),
        ({"date": 1e30}, "doesn't look like a result of asv"),
        ({"results": {"\x00": [[1.0], []]}}, "can't be shown"),
    ],
)
def test_a_broken_result_is_named_and_nothing_is_stored(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    folder = write_asv_results(tmp_path)
    path = folder / "box/bbbbbbbb-py3.11-torch.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CommandError) as refused:
        run_import(folder)
    assert str(refused.value).startswith(str(path))
    assert sentence in str(refused.value)
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("64", 64),
        ("0.5", 0.5),
        ("True", True),
        ("None", "None"),
        ("nan", "nan"),
        ("'\\x00'", "'\\x00'"),
    ],
)
def test_a_parameter_is_read_as_asv_writes_it(tmp_path: Path, text: str, value: Any) -> None:
    folder = write_asv_results(tmp_path)
    for path in folder.glob("box/*-*.json"):
        body = json.loads(path.read_text())
        body["results"] = {"suite.track_rows": [[2.0], [[text], ["1"]], "1"]}
        path.write_text(json.dumps(body))
    run_import(folder)
    assert Series.objects.get().case.params == {"how": value, "n": 1}


def test_a_unit_that_is_too_long_is_cut(tmp_path: Path) -> None:
    folder = write_asv_results(tmp_path)
    index = json.loads((folder / "benchmarks.json").read_text())
    index["suite.track_rows"] |= {
        "unit": "a rather long unit, with\x00 spaces",
        "param_names": ["h\x00w", "n"],
    }
    (folder / "benchmarks.json").write_text(json.dumps(index))
    run_import(folder)
    series = (
        Series.objects.filter(metric__name="gauge.rows").select_related("metric", "configuration").first()
    )
    assert series is not None
    assert (len(series.metric.unit), set(series.case.params)) == (30, {"'h\\x00w'", "n"})


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"holds no benchmarks\.json"):
        run_import(tmp_path)
