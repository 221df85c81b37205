"""A series read against each baseline: rolling, merge base, a pinned tag or commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Commit, Point, Project, Series
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db

# Of the history: three commits at the one, three at the other.
OLD, NEW = 0.00105, 0.00145


@pytest.fixture(scope="module")
def stepped_history(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The key of what each test's `step_time` is read from."""
    with share_rows(django_db_blocker, create_stepped_history) as made:
        yield made


def create_stepped_history() -> int:
    project = builders.create_history(count=6, step_at=3)
    Commit.objects.filter(position=1).update(tags=["v1.0"])
    return builders.headline_series(project.cases.get()).pk


@pytest.fixture
def step_time(stepped_history: int, db: None) -> Series:
    return Series.objects.get(pk=stepped_history)


def commit_at(position: int) -> Commit:
    return Commit.objects.get(position=position, branch="main")


def set_policy(text: str) -> None:
    Project.objects.update(policy=text)


def page_of(series: Series, **query: str) -> str:
    return series.get_absolute_url() + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")


def measure_branch(series: Series, *values: float, fork: int | None = 2) -> list[Commit]:
    """Commits of a branch that left the project's at a position, measured."""
    project = series.case.project
    made = [
        Commit.objects.create(
            project=project, branch="topic", position=3 + number, fork=fork, hash=f"{number}" * 40,
            subject=f"Try {number}", author="Ada", committed_at=commit_at(2).committed_at,
        )
        for number in range(len(values))
    ]  # fmt: skip
    for commit, value in zip(made, values, strict=True):
        builders.create_measured_run(commit, series.case, value)
    return made


def chosen_baseline(answer: Any) -> str:
    (label,) = re.findall(
        r'aria-current="true">([^<]*)</a>', answer.content.decode().split('id="baseline"')[1]
    )
    return str(label)


def drawn_heights(client: Client, address: str) -> list[float]:
    """Of the lines across the whole trend, in ms."""
    shapes = embedded_figure(client, address, "trend")["layout"].get("shapes", [])
    return [shape["y0"] for shape in shapes if shape.get("xref") == "paper"]


def test_by_default_it_is_the_level_before_the_newest_point(client: Client, step_time: Series) -> None:
    builders.create_change(step_time, commit_at(2), commit_at(3), 1.4)
    answer = client.get(page_of(step_time))
    assert chosen_baseline(answer) == "rolling"
    assert "the median of the 2 points before it" in shown_text(answer)
    # The trend has that level anyway.
    assert drawn_heights(client, page_of(step_time)) == []


def test_a_step_at_the_newest_point_is_read_against_the_level_before(
    client: Client, step_time: Series
) -> None:
    builders.create_change(step_time, commit_at(2), commit_at(3), 1.4)
    said = shown_text(client.get(page_of(step_time, until="3")))
    assert "is worse, +37 %" in said
    assert "the median of the 3 points before it" in said


@pytest.mark.parametrize("name", ["v1.0", "HASH"])
def test_a_tag_or_a_commit(client: Client, step_time: Series, name: str) -> None:
    named = commit_at(1).hash[:9] if name == "HASH" else name
    answer = client.get(page_of(step_time, against=named))
    said = shown_text(answer)
    assert chosen_baseline(answer) == named
    assert f"at {commit_at(1).short}" in said
    assert "is worse, +3" in said
    value = 1000 * step_time.points.get(position=1).value
    assert drawn_heights(client, page_of(step_time, against=named)) == [pytest.approx(value)]


def test_what_lies_far_beyond_the_points_is_named_at_the_edge(client: Client, step_time: Series) -> None:
    step_time.points.filter(position=1).update(value=0.1)
    where = page_of(step_time, against="v1.0", show="2")
    assert drawn_heights(client, where) == []
    notes = embedded_figure(client, where, "trend")["layout"]["annotations"]
    assert [note["text"] for note in notes] == ["v1.0 \N{UPWARDS ARROW}"]


def test_what_the_policy_pins_is_read_unasked(client: Client, step_time: Series) -> None:
    set_policy('[policy.baseline]\npinned = "v1.0"')
    assert chosen_baseline(client.get(page_of(step_time))) == "v1.0"
    assert chosen_baseline(client.get(page_of(step_time, against="rolling"))) == "rolling"


@pytest.mark.parametrize("beside", [{}, {"beside": "@main"}])
def test_another_branch_is_read_against_its_merge_base(
    client: Client, step_time: Series, beside: dict[str, str]
) -> None:
    measure_branch(step_time, NEW)
    answer = client.get(page_of(step_time, branch="topic", **beside))
    said = shown_text(answer)
    hashes = [row["point"].commit.hash for row in answer.context["rows"] if row["is_own"]]
    assert [Commit.objects.get(hash=name).branch for name in hashes] == ["topic"]
    assert chosen_baseline(answer) == "merge base"
    assert f"at {commit_at(2).short}" in said
    assert "is worse, +" in said


def test_a_branch_without_points_leads_back(client: Client, step_time: Series) -> None:
    said = shown_text(client.get(page_of(step_time, branch="nowhere")))
    assert "No run on nowhere has left a point here. Show main ." in said


def test_of_a_merge_base_that_is_not_measured_the_one_before_it_is(client: Client, step_time: Series) -> None:
    measure_branch(step_time, OLD)
    step_time.points.filter(position=2).delete()
    said = shown_text(client.get(page_of(step_time, branch="topic")))
    assert f"at {commit_at(1).short}" in said
    assert "is no different, " in said


def test_a_rolling_baseline_of_another_branch_is_drawn(client: Client, step_time: Series) -> None:
    measure_branch(step_time, OLD, OLD)
    where = page_of(step_time, branch="topic", against="rolling")
    assert len(drawn_heights(client, where)) == 1


def test_the_phases_of_both_stand_beside_each_other(client: Client, step_time: Series) -> None:
    answer = client.get(page_of(step_time, against="v1.0"))
    assert embedded_figure(client, page_of(step_time, against="v1.0"), "phases")["data"]
    assert "Phases of both" in shown_text(answer)
    assert answer.context["phase_rows"][0]["before"] is not None
    assert "Phases of both" not in shown_text(client.get(page_of(step_time)))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"against": "v9"}, "No commit of this name is known here yet."),
        ({"against": "merge-base"}, "Only another branch has a merge base"),
        ({"until": "0"}, "There is no point before the newest one on its level yet."),
    ],
)
def test_why_there_is_none(client: Client, step_time: Series, query: dict[str, str], sentence: str) -> None:
    assert sentence in shown_text(client.get(page_of(step_time, **query)))


def test_a_branch_whose_fork_is_not_known(client: Client, step_time: Series) -> None:
    measure_branch(step_time, OLD, fork=None)
    said = shown_text(client.get(page_of(step_time, branch="topic")))
    assert "Where this branch left the project's isn't known." in said


def test_a_commit_that_is_not_measured_can_be(signed_in: Client, step_time: Series) -> None:
    step_time.points.filter(position=1).update(tainted=True)
    page = signed_in.get(page_of(step_time, against="v1.0")).content.decode()
    assert "This case isn&#x27;t measured at that commit" in page
    assert f'name="commit" value="{commit_at(1).hash}"' in page
    assert ">Measure v1.0</button>" in page
    unknown = signed_in.get(page_of(step_time, against="v9")).content.decode()
    assert 'name="commit" value="v9"' in unknown


def test_the_two_may_be_measured_side_by_side(signed_in: Client, step_time: Series) -> None:
    answer = signed_in.get(page_of(step_time, against="v1.0"))
    asked = parse_qs(urlsplit(answer.context["baseline_experiment"]).query)
    assert (asked["base"], asked["head"]) == ([commit_at(1).hash], [commit_at(5).hash])
    assert "Measure the two side by side" in answer.content.decode()


def test_a_counter_is_compared_exactly(client: Client, step_time: Series) -> None:
    calls = builders.headline_series(step_time.case, "function_calls")
    said = shown_text(client.get(page_of(calls, against="v1.0")))
    assert "is no different, " in said


def test_tainted_points_are_neither_read_nor_read_against(client: Client, step_time: Series) -> None:
    step_time.points.filter(position=5).update(tainted=True)
    answer = client.get(page_of(step_time, against="v1.0"))
    assert answer.context["newest_point"].position == 4
    step_time.points.update(tainted=True)
    assert "All points that are shown are tainted." in shown_text(client.get(page_of(step_time)))


@pytest.mark.parametrize(
    ("position", "said"),
    [(5, "Behind it 1 tainted point tells nothing."), (4, "2 tainted points tell nothing.")],
)
def test_what_is_tainted_behind_the_newest_point_is_counted(
    client: Client, step_time: Series, position: int, said: str
) -> None:
    Point.objects.filter(series=step_time, position__gte=position).update(tainted=True)
    assert said in shown_text(client.get(step_time.get_absolute_url()))
