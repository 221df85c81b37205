"""No name before it is known: as long as several commits are left, pages say the range and their number."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Commit, Regression
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders

pytestmark = pytest.mark.django_db

# Where it is told, with the section that tells it.
PLACES = {
    "/": r'class="needs card">.*?</ul>',
    "/regressions/": r'aria-label="Regressions, table">.*?</table>',
    "/projects/snake/": r'aria-label="Regressions, table">.*?</table>',
    "/regressions/{}/": r'<p class="lead">.*?</p>',
    "/series/{}/": r'<ul class="changes card">.*?</ul>',
}


@pytest.fixture(scope="module")
def measured_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `line` is read from."""
    with share_rows(django_db_blocker, lambda: builders.create_measured_commits(8, step_at=5)):
        yield


@pytest.fixture
def line(measured_line: None, db: None) -> list[Commit]:
    return list(Commit.objects.order_by("position"))


@pytest.fixture(params=["suspected", "confirmed"])
def regression(line: list[Commit], request: pytest.FixtureRequest) -> Regression:
    """Its cause is one of the commits 2 to 5."""
    series = builders.headline_series(line[0].runs.get().case)
    return builders.create_regression(series, line[1], line[5], state=request.param, proving=True)


def read_section(client: Client, regression: Regression, where: str) -> str:
    key = regression.series_id if "series" in where else regression.pk
    shown = " ".join(client.get(where.format(key)).content.decode().split())
    section = re.search(PLACES[where], shown)
    assert section, where
    return re.sub(r"<[^>]+>", "", section[0])


def narrow_range(regression: Regression) -> None:
    regression.last_good = Commit.objects.get(position=4)
    regression.save()
    regression.changes.update(last_good=regression.last_good)


@pytest.mark.parametrize("where", PLACES)
def test_a_range_of_several_commits_names_none_of_them(
    client: Client, line: list[Commit], regression: Regression, where: str
) -> None:
    text = read_section(client, regression, where)
    assert f"one of 4 commits, {line[1].short}..{line[5].short}" in text
    assert line[5].subject not in text
    assert "in that commit" not in text


@pytest.mark.parametrize("where", PLACES)
def test_what_came_gradually_came_over_all_of_them(
    client: Client, line: list[Commit], regression: Regression, where: str
) -> None:
    regression.bisection = {"code": "gradual", "commits": 4}
    regression.save()
    text = read_section(client, regression, where)
    assert f"over 4 commits, {line[1].short}..{line[5].short}" in text
    assert "one of" not in text


@pytest.mark.parametrize("where", PLACES)
def test_once_one_commit_is_left_it_is_named(
    client: Client, line: list[Commit], regression: Regression, where: str
) -> None:
    narrow_range(regression)
    text = read_section(client, regression, where)
    assert line[5].short in text
    assert line[5].subject in text
    assert "commits" not in text


def test_what_several_commits_changed_is_told_of_all_of_them(client: Client, regression: Regression) -> None:
    assert "instead of 1 and was changed by these commits." in read_section(
        client, regression, "/regressions/{}/"
    )
    narrow_range(regression)
    assert "instead of 1 and was changed in that commit." in read_section(
        client, regression, "/regressions/{}/"
    )


@pytest.mark.parametrize("where", ["/projects/snake/commits/"])
def test_each_commit_of_the_range_is_marked_alike(
    client: Client, line: list[Commit], regression: Regression, where: str
) -> None:
    assert marked_commits(client, where) == {line[at].short: "regression in one of 4" for at in (2, 3, 4, 5)}
    regression.bisection = {"code": "gradual", "commits": 4}
    regression.save()
    assert marked_commits(client, where)[line[3].short] == "regression over 4"
    regression.bisection = {}
    narrow_range(regression)
    assert marked_commits(client, where) == {line[5].short: "regression"}


def test_of_two_ranges_the_narrower_one_marks_a_commit(
    client: Client, line: list[Commit], regression: Regression
) -> None:
    builders.create_regression(regression.series, line[2], line[4])
    marks = marked_commits(client, "/projects/snake/commits/")
    assert [marks[line[at].short][-1] for at in (2, 3, 4, 5)] == ["4", "2", "2", "4"]


def marked_commits(client: Client, where: str) -> dict[str, str]:
    """By hash what the chip of a regression beside a commit says."""
    rows = re.findall(r"<tr>.*?</tr>", client.get(where).content.decode(), re.DOTALL)
    found = (re.search(r'<code>(\w+)</code>.*class="chip flag".*?>(.*?)</a>', row) for row in rows)
    return {match[1]: match[2] for match in found if match}


def test_a_change_of_a_bisected_regression_names_its_commit(
    client: Client, line: list[Commit], regression: Regression
) -> None:
    """No point lies between the ends of the step, but pairs have found the commit."""
    Regression.objects.update(last_good=line[2], first_bad=line[3])
    text = read_section(client, regression, "/series/{}/")
    assert f"{line[3].short} {line[3].subject}" in text
    assert "one of" not in text


def test_while_a_range_is_narrowed_the_lines_are_those_of_the_wider_one(
    client: Client, line: list[Commit], regression: Regression
) -> None:
    excerpt = {"file": builders.SUSPECT["file"], "function": "push", "lines": [], "left_out": 0}
    own = Regression.difference_key(line[1].hash, line[5].hash)
    for explained_for, expected in ((own, False), ("another..range", True)):
        Regression.objects.update(excerpts=[excerpt], explained_for=explained_for)
        shown = client.get(regression.get_absolute_url()).content.decode()
        assert ("By a wider range of commits" in shown) is expected
        assert ("was changed by these commits" in shown) is not expected
