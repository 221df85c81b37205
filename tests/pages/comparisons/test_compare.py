"""Two commits, branches, tags, runs or cases beside each other: a planted difference is found everywhere."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from paceline.document import TIMED_KINDS, read_document
from paceline.reports.comparison import compare_documents

from dashboard.comparisons.comparing import window_differences
from dashboard.comparisons.metric_rows import MetricRow, weigh_together
from dashboard.comparisons.pairing import MOST_POOLED, CasePair, PooledRuns
from dashboard.detection.comparison import ENOUGH_SAMPLES
from dashboard.detection.many_intervals import FALSE_DISCOVERIES
from dashboard.environments import Difference
from dashboard.models import Commit, Metric, Point, Project, Run
from dashboard.pages.comparisons import compare
from dashboard.pages.comparisons.compare import draw_forest
from dashboard.policy.baselines import ASSUMED_NOISE
from dashboard.sentences.comparisons.comparisons import summary_text
from dashboard.sentences.formatting.metric_labels import metric_label
from tests.pages import builders
from tests.pages.comparison_builders import measure_many, plant_difference
from tests.pages.conftest import shown_text
from tests.pages.documents import complete_document
from tests.pages.experiment_builders import create_experiment

pytestmark = pytest.mark.django_db

PAGE = "/projects/snake/compare/"


@pytest.fixture
def planted(db: None) -> list[Commit]:
    return plant_difference()


def add_unmeasured(planted: list[Commit]) -> Commit:
    """A commit that no run is of yet."""
    newest = planted[-1]
    return Commit.objects.create(
        project=newest.project, hash="f" * 40, branch="main", position=9, committed_at=newest.committed_at
    )


def read_answer(client: Client, **query: str) -> dict[str, Any]:
    response = client.get("/api/v1/projects/snake/comparison", query)
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def find_metric(answer: dict[str, Any], name: str, phase: str = "") -> dict[str, Any]:
    rows: list[dict[str, Any]] = answer["comparison"]["metrics"]
    return next(row for row in rows if (row["metric"]["name"], row["phase"]) == (name, phase))


def test_only_experiments_that_measured_are_told_of(client: Client, planted: list[Commit]) -> None:
    ends = [planted[0], planted[-1]]
    undecided, _ = (
        create_experiment(ends, state="done", verdict=verdict, phase=verdict)
        for verdict in ("undecided", "untestable")
    )
    query = {"base": ends[0].hash, "head": ends[1].hash}
    _, _, told = shown_text(client.get(PAGE, query)).partition("Measured side by side already: ")
    assert told.startswith(f"experiment {undecided.pk} , step time in undecided (undecided).")


def test_a_planted_difference_is_found_on_page_files_and_api(client: Client, planted: list[Commit]) -> None:
    query = {"base": "v1.0", "head": planted[-1].hash[:8]}
    row = find_metric(read_answer(client, **query), "step_time")
    assert row["low"] < 1.38 < row["high"]
    assert (row["verdict"], row["direction"]) == ("higher", "worse")
    text = shown_text(client.get(PAGE, query))
    percent = f"{100 * (row['ratio'] - 1):.0f}"
    assert f"step time +{percent} %" in text.lower()
    assert "copy_all" in text
    assert "9.9.9" in text
    table = list(
        csv.DictReader(io.StringIO(client.get("/projects/snake/compare.csv", query).content.decode()))
    )
    told = next(cells for cells in table if cells["part"] == "metric" and cells["name"] == "step_time")
    assert (float(told["ratio"]), told["verdict"], told["reason"]) == (row["ratio"], "higher", "worse")
    markdown = client.get("/projects/snake/compare.md", query).content.decode()
    assert "`copy_all" in markdown


def test_what_differs_by_less_is_folded_and_no_phase_without_a_difference_is_open(
    client: Client, planted: list[Commit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "MOST_OPEN", 1)
    page = client.get(PAGE, {"base": "v1.0", "head": planted[-1].hash[:8]})
    differing = page.context["compared"].different
    shown = [row.row for row in (*page.context["different"], *page.context["folded"])]
    assert shown == differing
    assert f"{len(differing) - 1} more differ by less" in shown_text(page)
    moved = {row.phase for row in differing if row.metric.name == "phase_self_time"}
    assert moved <= {shown.row.path for shown in page.context["phases"]}
    assert not moved & {shown.row.path for shown in page.context["alike_phases"]}


def test_a_chat_previews_a_comparison(client: Client, planted: list[Commit]) -> None:
    page = client.get(PAGE, {"base": "v1.0", "head": "main"}).content.decode()
    told = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert told["title"] == f"snake: {planted[3].short} against {planted[1].short}"
    assert f"{PAGE}?base={planted[1].short}&amp;head={planted[3].short}&amp;" in told["url"]
    assert "metrics differ" in told["description"]
    Project.objects.update(visibility="private")
    assert "og:" not in client.get(PAGE, {"base": "v1.0", "head": "main"}).content.decode()


def test_equal_commits_show_no_difference(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[2].hash}
    answer = read_answer(client, **query)
    told = {row["verdict"] for row in answer["comparison"]["metrics"]}
    assert told == {"~", "?"}
    assert answer["comparison"]["functions"] == []
    unknown = sum(row["verdict"] == "?" for row in answer["comparison"]["metrics"])
    said = f"No metric surely differs; {unknown} can't be determined."
    assert said in shown_text(client.get(PAGE, query))


def test_what_calls_otherwise_is_named(client: Client, planted: list[Commit]) -> None:
    found = read_answer(client, base=planted[0].hash, head=planted[3].hash)["comparison"]
    assert {row["name"]: row["what"] for row in found["functions"]} == {"push": "more", "copy_all": "new"}
    assert [(row["name"], row["what"]) for row in found["operations"]] == [("aten::mm", "more")]
    assert {"name": "torch", "base": "2.13.0+cpu", "head": "9.9.9"} in found["environment"]
    calls = next(
        row for row in found["metrics"] if row["metric"]["name"] == "function_calls" and not row["phase"]
    )
    assert (calls["base"], calls["head"], calls["exact"], calls["low"]) == (412, 667, True, None)


def test_the_flame_graph_of_the_difference_colours_what_moved(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[3].hash}
    page = client.get(PAGE, query).content.decode()
    assert 'class="much-more"' in page
    assert "2 µs → 612 µs" in page
    frame = re.search(r"frame=(\d+)[^>]*><title>push replay.py", page)
    assert frame is not None
    inside = client.get(PAGE, {**query, "frame": frame[1]}).content.decode()
    assert '<code class="strong">push replay.py</code>' in inside


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        ({"base": "v1.1", "head": "main"}, "base", "tag “v1.1” was measured here; near to it are v1.0"),
        (
            {"base": "main", "head": "0" * 12},
            "head",
            "Measured are branches main; tags v1.0;",
        ),
        ({"base": "main", "head": "run:99999999"}, "head", "snake has no run 99999999"),
        ({"base": "main", "head": "main"}, "head", "it is the same commit as the base"),
        ({"base": "v1.0", "head": "main", "case": "walker"}, "case", "walker isn't measured at both"),
        ({"base": "v1.0"}, "head", "it is missing"),
    ],
)
def test_a_side_that_means_nothing_is_refused_in_one_sentence(
    client: Client, planted: list[Commit], query: dict[str, str], field: str, sentence: str
) -> None:
    refused = client.get("/api/v1/projects/snake/comparison", query)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert sentence in refused.json()["detail"]
    if {"base", "head"} <= query.keys():
        page = client.get(PAGE, query)
        assert (page.status_code, page.content.count(b'role="alert"')) == (400, 1)
        assert f'value="{query["base"]}"' in page.content.decode()


def test_what_was_never_measured_can_be_measured_from_there(
    client: Client, operator: User, planted: list[Commit]
) -> None:
    Project.objects.update(repository="https://example.org/snake.git")
    query = {"base": "main", "head": "new-loop"}
    assert "in the repository?" not in shown_text(client.get(PAGE, query))
    client.force_login(operator)
    page = client.get(PAGE, query).content.decode()
    assert '<input type="hidden" name="commit" value="new-loop">' in page
    assert "/projects/snake/experiments/new/?base=main&amp;head=new-loop" in page
    page = client.get(PAGE, {"base": "main", "head": add_unmeasured(planted).hash}).content.decode()
    assert f'<button class="plain">Measure {"f" * 10}</button>' in page


def test_with_one_measured_commit_the_page_says_the_next_step(client: Client, planted: list[Commit]) -> None:
    assert "is measured yet" not in shown_text(client.get(PAGE))
    Run.objects.exclude(commit=planted[0]).delete()
    query = {"base": "main", "head": planted[0].hash}
    for page in (client.get(PAGE), client.get(PAGE, query)):
        assert f"Only {planted[0].short} is measured yet" in shown_text(page)
    Run.objects.all().delete()
    assert "Nothing is measured yet" in shown_text(client.get(PAGE))


def test_without_ratios_there_is_no_axis(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[3].hash}
    assert '<svg class="ticks"' in client.get(PAGE, query).content.decode()
    assert draw_forest([]) == (None, [])
    growth = MetricRow(Metric(), "", 1, True, False, -1.0, 3.0, "difference", "higher", 4.0)
    axis, (shown,) = draw_forest([growth])
    assert (axis, shown.place) == (None, None)


def test_it_says_how_both_sides_become_one_difference(client: Client, planted: list[Commit]) -> None:
    said = shown_text(client.get(PAGE, {"base": planted[0].hash, "head": planted[3].hash}))
    assert "Head against base is the median over all pairs of a repetition" in said
    assert metric_label("memory_growth") != metric_label("phase_memory", "learn").removesuffix(" in learn")


def test_of_many_known_names_it_says_that_there_are_more(client: Client, planted: list[Commit]) -> None:
    Commit.objects.filter(pk=planted[0].pk).update(tags=[f"v1.{number}" for number in range(5)])
    said = shown_text(client.get(PAGE, {"base": "main", "head": "0" * 12}))
    assert re.search(r"tags (v1\.\d, ){3}v1\.\d and more; commits", said)


def test_of_a_tainted_profile_calls_are_compared_and_no_times(client: Client, planted: list[Commit]) -> None:
    query = {"base": planted[0].hash, "head": planted[3].hash}
    assert not client.get(PAGE, query).context["icicle"].by_calls
    planted[3].runs.update(tainted=True)
    answer = client.get(PAGE, query)
    whats = {row.what for _, _, rows, _ in answer.context["tables"] for row in rows}
    assert whats
    assert whats <= {"new", "gone", "more", "fewer"}
    assert answer.context["icicle"].by_calls
    assert "is tainted: calls are compared, and times tell nothing." in shown_text(answer)
    assert not any(row.has_times for _, _, rows, _ in answer.context["tables"] for row in rows)
    parts = client.get("/projects/snake/compare.csv", query).content.decode()
    assert ",push," in parts
    assert re.search(r"\n(function|operation),.*,s/step,", parts) is None
    told = read_answer(client, **query)["comparison"]["functions"]
    assert {row["seconds_head"] for row in told} == {None}


def test_a_tainted_run_is_left_out_and_told(client: Client, planted: list[Commit]) -> None:
    case = planted[0].project.cases.get()
    spoilt = builders.create_measured_run(planted[3], case, 0.009, tainted=True, warning_codes=["co_tenant"])
    query = {"base": planted[0].hash, "head": planted[3].hash}
    answer = read_answer(client, **query)
    assert answer["comparison"]["head"]["left_out"] == [spoilt.pk]
    assert find_metric(answer, "step_time")["head"] < 0.002
    assert f"#{spoilt.pk} tainted" in shown_text(client.get(PAGE, query))
    Run.objects.exclude(pk=spoilt.pk).filter(commit=planted[3]).delete()
    row = find_metric(read_answer(client, **query), "step_time")
    assert (row["verdict"], row["reason"]) == ("?", "tainted at the head")


def test_a_warning_keeps_back_only_the_metrics_that_it_concerns(
    client: Client, planted: list[Commit]
) -> None:
    times = Point.objects.filter(run__commit=planted[0], series__metric__kind__in=TIMED_KINDS)
    disturbed = times.update(tainted=True)
    planted[0].runs.update(tainted=True)
    query = {"base": planted[0].hash, "head": planted[3].hash}
    answer = read_answer(client, **query)
    assert find_metric(answer, "step_time")["verdict"] == "?"
    assert find_metric(answer, "function_calls")["direction"] == "worse"
    rows = len(answer["comparison"]["metrics"])
    assert answer["warnings"][-1] == (
        f"All runs of the base are tainted, so {disturbed} of {rows} metrics can't be determined."
    )
    text = shown_text(client.get(PAGE, query))
    assert "throughput can't be determined, no other headline metric differs" in text.lower()
    assert "not enough data" not in text


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({"peak_memory": "~", "step_time": "~"}, "no difference"),
        ({"peak_memory": "?", "step_time": "?"}, "nothing can be determined"),
        (
            {"peak_memory": "~", "step_time": "?"},
            "step time can't be determined, no other headline metric differs",
        ),
        (
            {"peak_memory": "higher", "step_time": "?"},
            "peak memory +10 % worse; step time can't be determined",
        ),
    ],
)
def test_what_cannot_be_told_is_not_told_to_be_alike(verdicts: dict[str, Any], said: str) -> None:
    rows = [
        MetricRow(Metric(name=name, better="lower"), "", 1, True, False, 1.0, 1.1, "ratio", verdict, 1.1)
        for name, verdict in verdicts.items()
    ]
    assert summary_text(rows) == said


def test_runs_of_one_commit_are_pooled_with_the_noise_between_them(
    client: Client, planted: list[Commit]
) -> None:
    case = planted[0].project.cases.get()
    for seed, step_time in enumerate((0.0009, 0.0011, 0.00115)):
        builders.create_measured_run(planted[0], case, step_time, seed=seed)
    answer = read_answer(client, base=planted[0].hash, head=planted[1].hash)
    assert len(answer["comparison"]["base"]["runs"]) == 4
    row = find_metric(answer, "step_time")
    assert row["verdict"] == "~"
    assert row["high"] / row["low"] > 1.1


def test_other_pools_and_windows_are_told_and_never_mixed(
    client: Client, planted: list[Commit], django_assert_num_queries: Callable[[int], Any]
) -> None:
    first, second = measure_many(planted)
    answer = read_answer(client, base=planted[0].hash, head=planted[3].hash)
    obstacles = {(row["case"], row["pool"]): row["obstacle"] for row in answer["not_compared"]}
    assert obstacles == {("on_gpu", "fast"): "pool", ("other", "default"): "only head"}
    assert {case["pool"] for case in answer["cases"]} == {"default"}
    with django_assert_num_queries(12):
        client.get(PAGE, {"base": planted[0].hash, "head": "main"})
    named = read_answer(client, base=f"run:{second.pk}", head=f"run:{first.pk}")
    assert "pool fast, the head in pool default" in named["warnings"][0]


def test_windows_that_differ_within_a_side_are_told() -> None:
    base, head = (PooledRuns(tuple(Run(pk=pk) for pk in keys)) for keys in ((1, 2), (3,)))
    windows = {1: 500, 2: 1000, 3: 500}
    documents = {pk: {"protocol": {"steps": steps, "warmup_steps": 10}} for pk, steps in windows.items()}
    assert window_differences(CasePair(base, head), documents) == [Difference("steps", "500 and 1000", "500")]
    documents[2] = documents[1]
    assert window_differences(CasePair(base, head), documents) == []


def test_the_case_that_differs_most_is_shown_first(client: Client, planted: list[Commit]) -> None:
    measure_many(planted)
    query = {"base": planted[0].hash, "head": planted[3].hash}
    answer = read_answer(client, **query)
    assert [case["benchmark"] for case in answer["cases"]] == ["snake_dqn", "on_gpu"]
    assert answer["comparison"]["head"]["case"] == "snake_dqn[variant=optimized]"
    kernels = read_answer(client, **query, case="on_gpu")["comparison"]["kernels"]
    assert [(row["name"], row["what"]) for row in kernels] == [
        ("ampere_sgemm_128x64_tn (aten::addmm)", "more")
    ]
    two = read_answer(client, **{**query, "case": "on_gpu", "head_case": "other"})["comparison"]
    assert (two["base"]["case"], two["head"]["case"]) == ("on_gpu", "other")


def test_a_headline_means_the_same_in_the_list_and_among_all_metrics() -> None:
    common = {"metric": Metric(name="step_time"), "series": 1, "exact": False, "base": 1.0, "effect": "ratio"}
    told = {"ratio": 1.065, "low": 1.025, "high": 1.106, "verdict": "higher", "samples": 20}
    alike = {"ratio": 1.0, "low": 0.96, "high": 1.04, "verdict": "~", "samples": 20}
    headlines = [
        MetricRow(phase=f"h{number}", headline=True, head=row["ratio"], **common, **row)
        for number, row in enumerate([told, alike, alike, alike])
    ]
    details = [
        MetricRow(phase=f"d{number}", headline=False, head=row["ratio"], **common, **row)
        for number, row in enumerate([told, *[alike] * 95])
    ]
    weighed = weigh_together([*headlines, *details])
    assert weighed[:4] == weigh_together(headlines) == headlines
    # Among a hundred one of its size comes by chance.
    assert weighed[4].verdict == "~"


def test_a_branch_is_its_newest_measured_commit(client: Client, planted: list[Commit]) -> None:
    measure_many(planted)
    answer = read_answer(client, base="v1.0", head="main")
    assert answer["head"]["commit"]["hash"] == planted[3].hash
    assert "6 newer commits aren't measured yet" in shown_text(
        client.get(PAGE, {"base": "v1.0", "head": "main"})
    )
    assert f"base={planted[1].short}&head={planted[3].short}" in answer["url"]
    Commit.objects.filter(pk=planted[2].pk).update(branch="ffff")
    assert read_answer(client, base="v1.0", head="ffff")["head"]["commit"]["hash"] == planted[2].hash
    assert read_answer(client, base="v1.0", head="f" * 8)["head"]["commit"]["hash"] == "f" * 40
    nothing = client.get(PAGE, {"base": "main", "head": "f" * 40})
    assert "isn't measured yet: there is nothing to put beside the base" in shown_text(nothing)


def test_who_may_measure_is_offered_the_experiment(
    client: Client, operator: User, planted: list[Commit]
) -> None:
    query = {"base": planted[0].hash, "head": planted[3].hash}
    assert "Measure the two" not in shown_text(client.get(PAGE, query))
    client.force_login(operator)
    page = client.get(PAGE, query).content.decode()
    form = page.partition('action="/projects/snake/experiments/new/"')[2].partition("</form>")[0]
    for name, value in {**query, "metric": "step_time", "pool": "default", "quick": "no"}.items():
        assert f'name="{name}" value="{value}"' in form


def test_downloaded_documents_are_compared_by_the_harness(client: Client, line: list[Commit]) -> None:
    case = builders.create_case(line[0].project)
    runs = [builders.create_measured_run(commit, case, 0, body=complete_document()) for commit in line[:2]]
    bodies = [client.get(f"/runs/{run.pk}/document/").getvalue() for run in runs]
    told = compare_documents(*(read_document(body) for body in bodies))
    assert "step_time" in told


def test_its_documentation_names_the_bounds_that_hold() -> None:
    text = " ".join(Path("docs/compare.md").read_text().split())
    counted = {4: "Fewer than four values", 10: "the newest ten of each case"}
    assert counted[ENOUGH_SAMPLES] in text
    assert counted[MOST_POOLED] in text
    assert (ASSUMED_NOISE, FALSE_DISCOVERIES) == (0.01, 1 / 20)
    assert "as noisy as one per cent" in text
    assert "at most one in twenty" in text
