"""Rows of before there were experiments and evidence as data, brought to what the models say today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import (
    Change,
    Configuration,
    Delivery,
    Experiment,
    ExperimentPair,
    Limit,
    Regression,
    RegressionExperiment,
    Run,
    Sentinel,
    Series,
)
from dashboard.sentences.comparisons.experiments import answer_sentence
from dashboard.sentences.regressions.bisections import bisection_sentence
from dashboard.sentences.regressions.causes import cause_sentence
from dashboard.sentences.series.doubts import describe_doubts

# By its mark pytest-django knows that these tests, also where they run alone, need a database.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("migrated")]

BEFORE = ("dashboard", "0013_attribution")
SCHEMA = "before_experiments"
PLACES = {
    "on the host, which has no device to wait for": ("host alone", ""),
    "on the host": ("host", ""),
    "on the device": ("device", ""),
    "on the host or the device: their times grew alike": ("host or device", ""),
    "on the device: the host waits in this phase for the device's work of learn/optimize": (
        "waits for device",
        "learn/optimize",
    ),
    "": ("", ""),
}
ALIKE = "It is one of these 2 commits, which can't be told apart."
SPENT = "The budget of 24 pairs was spent before anything could be told."
SUSPECT = "The commits changed the suspect replay.py:push."
NOISY = "The step is near the noise."


@dataclass
class OldSite:
    """What the rows of the old tables are made of; `keys` says which row is which."""

    apps: Any
    keys: dict[str, int] = field(default_factory=dict)

    def create(self, model: str, **values: Any) -> Any:
        return self.apps.get_model("dashboard", model).objects.create(**values)

    def fill(self) -> None:
        self.project = self.create("Project", slug="snakes", repository="/nowhere", confirmation_pairs=17)
        self.pool = self.create("Pool", name="default")
        self.machine = self.create("Machine", name="bench-1", pool=self.pool)
        self.case = self.create("Case", project=self.project, benchmark="snake_dqn", key="", params={})
        self.commits = [self._commit(position) for position in range(20)]
        self.series = self._series("step_time", "s", "time")
        self._runs()
        self._places()
        self._confirmations()
        self._sentinel()

    def _commit(self, position: int) -> Any:
        when = timezone.now() + timedelta(hours=position)
        values = {"hash": f"{position:040x}", "branch": "main", "position": position, "committed_at": when}
        return self.create("Commit", project=self.project, **values)

    def _series(self, name: str, unit: str, kind: str, **values: Any) -> Any:
        metric = self.create("Metric", name=name, unit=unit, better="lower", kind=kind)
        way = {"case": self.case, "version": 2, "pool": self.pool} | values
        return self.create("Series", metric=metric, **way)

    def _run(self, position: int, **values: Any) -> Any:
        way = {"case": self.case, "version": 2, "pool": self.pool, "repetitions": 3, "time_limit": 60}
        return self.create("Run", commit=self.commits[position], **(way | {"state": "done"} | values))

    def _runs(self) -> None:
        self.keys["run"] = self._run(3).pk
        self._document(self.keys["run"])
        self.keys["quick run"] = self._run(3, quick=True).pk
        crossed, tainted = self._run(12), self._run(12)
        memory = self._series("peak_memory", "B", "memory")
        values = {"series": memory, "position": 12, "maximum": 1.0, "value": 2.0, "crossed": True}
        self.keys["limit"] = self.create("Limit", run=crossed, **values).pk
        self.keys["tainted limit"] = self.create("Limit", run=tainted, tainted=True, **values).pk
        said = "peak_memory is 2 B, its limit is at most 1 B"
        self.keys["crossed"] = self._regression(12, state="confirmed", series=memory, limit=said).pk

    def _document(self, run: int) -> None:
        codes = ("throttling", "co_tenant", "throttling")
        loops = [{"calibration_before": 0.011, "calibration_after": 0.012}, {"calibration_before": 0.013}]
        body = {"warnings": [{"code": code} for code in codes], "repetitions": loops}
        self.create("Document", run_id=run, format="paceline.document/1", body=body, sha256="0" * 64)

    def _regression(self, at: int, **values: Any) -> Any:
        ends = {"first_bad": self.commits[at], "last_good": self.commits[at - 1]}
        size = {"series": self.series, "before": 1.0, "after": 1.4, "ratio": 1.4}
        return self.create("Regression", project=self.project, **(ends | size | values))

    def _change(self, regression: Any, **values: Any) -> None:
        good, bad = regression.last_good, regression.first_bad
        size = {"before": 1.0, "after": 1.4, "ratio": 1.4, "confidence": 0.99, "direction": "regression"}
        where = {"first_bad": bad, "last_good": good, "position": bad.position, "series": self.series}
        self.create("Change", regression=regression, **(where | size | values))

    def _places(self) -> None:
        for position, place in enumerate(PLACES, start=1):
            regression = self._regression(position, place=place)
            self.keys[place] = regression.pk
            self._change(regression)

    def _confirmations(self) -> None:
        told = {"cause": "code", "cause_evidence": [SUSPECT, "Exact counters say so."]}
        proved = self._regression(8, state="confirmed", last_good=self.commits[6], bisected=ALIKE, **told)
        markers = ["driver 550.1 -> 560.2", "another machine"]
        self._change(proved, doubts=[NOISY], markers=markers, innocent=True)
        gone = self._regression(9, withdrawn_at=timezone.now())
        rest = self._regression(10, proving=True)
        self.keys |= {"proved": proved.pk, "withdrawn": gone.pk, "rest": rest.pk}
        for number, (purpose, verdict) in enumerate(
            (("confirm", "confirmed"), ("bisect", "bad"), ("bisect", "good"), ("branch", "between"))
        ):
            ratio = 1.4 if verdict == "confirmed" else None
            row = self._confirmation(proved, purpose=purpose, state="done", verdict=verdict, ratio=ratio)
            self.keys[f"experiment {verdict}"] = row.pk
            self._pair(row, number)
        self._confirmation(gone, purpose="confirm", state="done", verdict="undecided", reason=SPENT)
        waiting = self._confirmation(rest, purpose="confirm", state="requested")
        self.keys["experiment waiting"] = waiting.pk
        channel = self.create("Channel", project=self.project, kind="email", address="a@example.org")
        values = {"event": "opened", "attempts": 3, "next_attempt_at": timezone.now()}
        self.create("Delivery", regression=proved, channel=channel, **values)

    def _confirmation(self, regression: Any, **values: Any) -> Any:
        sides = {"good": regression.last_good, "bad": regression.first_bad}
        step = {"series": self.series, "pool": self.pool, "before": 1.0, "after": 1.4, "error": 0.02}
        return self.create("Confirmation", regression=regression, **(sides | step | values))

    def _pair(self, confirmation: Any, index: int) -> None:
        swept = {"parameter": "games", "amount": "s", "good": [[1, 2.0]], "bad": [[1, 3.0]]}
        values = {"good_first": index == 0, "good": 1.0, "bad": 1.4, "seconds": 5.0}
        both = {"phases": {"act": [0.1, 0.5]}, "sweeps": swept if index == 0 else {}}
        self.create("Pair", confirmation=confirmation, index=index, **values, **both)

    def _sentinel(self) -> None:
        values = {"case": self.case, "machine": self.machine, "commit": self.commits[0], "ratio": 1.1}
        self.create("Sentinel", version=5, **values)


@pytest.fixture(scope="module")
def migrated(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, int]]:
    """The keys of what was filled in before and brought here by the migrations, in a schema of its own."""
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {SCHEMA}")
            cursor.execute(f"SET search_path TO {SCHEMA}")
        try:
            executor = MigrationExecutor(connection)
            # Without what a new site takes in their place.
            executor.loader = MigrationLoader(connection, replace_migrations=False)
            executor.migrate([BEFORE])
            site = OldSite(executor.loader.project_state([BEFORE]).apps)
            site.fill()
            executor = MigrationExecutor(connection)
            executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] == "dashboard"])
            yield site.keys
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET search_path")
                cursor.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
            connection.close()


# Of the tables of the schema that is looked at: what they hold, what holds of it, and whether it is logged.
COLUMNS = """
SELECT relname, relpersistence, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
       pg_get_expr(adbin, adrelid)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind = 'r' AND relname LIKE 'dashboard%%' AND relnamespace = %s::regnamespace
"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid::regclass::text LIKE 'dashboard%%' AND connamespace = %s::regnamespace
"""
INDEXES = """
SELECT tablename, regexp_replace(indexdef, '^CREATE( UNIQUE)? INDEX .* ON [^.]*', 'CREATE\\1 INDEX')
FROM pg_indexes WHERE tablename LIKE 'dashboard%%' AND schemaname = %s
"""
# But for those that each `migrate` makes anew.
TRIGGERS = """
SELECT pg_get_triggerdef(pg_trigger.oid, true), prosrc
FROM pg_trigger JOIN pg_proc ON tgfoid = pg_proc.oid JOIN pg_class ON tgrelid = pg_class.oid
WHERE NOT tgisinternal AND relnamespace = %s::regnamespace AND tgname NOT LIKE 'revise_%%'
"""


@pytest.mark.parametrize(
    "query",
    [COLUMNS, CONSTRAINTS, INDEXES, TRIGGERS],
    ids=["columns", "constraints", "indexes", "triggers"],
)
def test_a_new_site_has_the_tables_of_an_old_one(query: str) -> None:
    found = {}
    with connection.cursor() as cursor:
        for schema in ("public", SCHEMA):
            cursor.execute(f"SET search_path TO {schema}")
            cursor.execute(query, [schema])
            found[schema] = Counter(cursor.fetchall())
    assert found["public"] == found[SCHEMA]
    assert found[SCHEMA]


def regression_of(migrated: dict[str, int], name: str) -> Regression:
    return Regression.objects.get(pk=migrated[name])


def experiment_of(migrated: dict[str, int], verdict: str) -> Experiment:
    return Experiment.objects.get(pk=migrated[f"experiment {verdict}"])


def test_what_is_measured_one_way_is_one_row(migrated: dict[str, int]) -> None:
    ways = set(Configuration.objects.values_list("version", "quick", "case__benchmark", "pool__name"))
    assert ways == {
        (2, False, "snake_dqn", "default"),
        (2, True, "snake_dqn", "default"),
        (5, False, "snake_dqn", "default"),
    }
    assert Run.objects.get(pk=migrated["run"]).configuration == Series.objects.all()[0].configuration
    assert Run.objects.get(pk=migrated["quick run"]).quick
    assert Sentinel.objects.get().configuration.version == 5


def test_what_a_document_says_of_its_machine_stands_with_its_run(migrated: dict[str, int]) -> None:
    run = Run.objects.get(pk=migrated["run"])
    assert (run.warning_codes, run.calibration) == (["throttling", "co_tenant"], 0.012)
    bare = Run.objects.get(pk=migrated["quick run"])
    assert (bare.warning_codes, bare.calibration) == ([], None)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_is_a_code(migrated: dict[str, int], place: str) -> None:
    regression = regression_of(migrated, place)
    assert (regression.place, regression.place_phase) == PLACES[place]


@pytest.mark.parametrize(
    ("old", "verdict", "purpose", "question"),
    [
        ("confirmed", "confirmed", "proof", "test"),
        ("bad", "whole", "bisection", "place"),
        ("good", "none", "bisection", "place"),
        ("between", "part", "merge", "place"),
    ],
)
def test_a_confirmation_is_an_experiment(
    migrated: dict[str, int], old: str, verdict: str, purpose: str, question: str
) -> None:
    experiment = experiment_of(migrated, old)
    found = experiment.verdict, experiment.purpose, experiment.question, experiment.state
    assert found == (verdict, purpose, question, "done")
    assert (experiment.base_commit.position, experiment.head_commit.position) == (6, 8)
    assert (experiment.most_pairs, experiment.error) == (17, 0.02)
    assert experiment.regression_link.regression_id == migrated["proved"]
    assert experiment.base_configuration == experiment.head_configuration


def test_pairs_have_bases_and_heads(migrated: dict[str, int]) -> None:
    pair = ExperimentPair.objects.get(experiment=migrated["experiment confirmed"])
    assert (pair.base_first, pair.base, pair.head, pair.phases) == (True, 1.0, 1.4, {"act": [0.1, 0.5]})
    assert pair.sweeps == {"parameter": "games", "amount": "s", "base": [[1, 2.0]], "head": [[1, 3.0]]}
    assert set(ExperimentPair.objects.values_list("index", flat=True)) == {0, 1, 2, 3}


def test_what_pairs_proved_has_their_level_before(migrated: dict[str, int]) -> None:
    assert experiment_of(migrated, "confirmed").base_level == 1.0
    assert regression_of(migrated, "proved").paired_before == 1.0
    assert regression_of(migrated, "withdrawn").paired_before is None


def test_a_new_experiment_takes_a_key_of_its_own(migrated: dict[str, int]) -> None:
    pattern = experiment_of(migrated, "waiting")
    pattern.pk, pattern.question = None, "estimate"
    pattern.save()
    assert pattern.pk > max(key for name, key in migrated.items() if name.startswith("experiment"))
    ExperimentPair.objects.create(experiment=pattern, index=0, base_first=True, base=1, head=1, seconds=1)
    pattern.delete()


def test_what_waits_goes_on_waiting(migrated: dict[str, int]) -> None:
    waiting = experiment_of(migrated, "waiting")
    assert (waiting.state, waiting.verdict, waiting.reason) == ("requested", "", {})
    assert RegressionExperiment.objects.get(experiment=waiting).regression_id == migrated["rest"]


def test_stored_sentences_are_said_as_they_were(migrated: dict[str, int]) -> None:
    proved = regression_of(migrated, "proved")
    assert [cause_sentence(said) for said in proved.cause_evidence] == [SUSPECT, "Exact counters say so."]
    assert bisection_sentence(proved) == ALIKE
    change = proved.changes.get()
    assert NOISY in describe_doubts(change)
    undecided = Experiment.objects.get(verdict="undecided")
    assert SPENT.rstrip(".") in answer_sentence(undecided)


def test_what_a_spent_budget_is_sure_of_is_a_verdict(migrated: dict[str, int]) -> None:
    waiting = experiment_of(migrated, "waiting")
    Experiment.objects.filter(pk=waiting.pk).update(reason={"code": "budget spent", "sure": "between"})
    import_module("dashboard.migrations.0027_places_of_budgets").name_verdicts(apps, connection)
    waiting.refresh_from_db()
    assert waiting.reason == {"code": "budget spent", "sure": "part"}


def test_markers_are_values(migrated: dict[str, int]) -> None:
    change = regression_of(migrated, "proved").changes.get()
    assert change.markers == [["driver", "550.1", "560.2"], ["another machine", "", ""]]
    assert change.environment_only


def test_a_change_reaches_over_its_own_commits() -> None:
    reaches = Change.objects.values_list("reach_good", "reach_bad", "last_good__position", "position")
    assert all((good, bad) == (first, last) for good, bad, first, last in reaches)


def test_a_limit_belongs_to_its_regression(migrated: dict[str, int]) -> None:
    assert [limit.pk for limit in regression_of(migrated, "crossed").limits.all()] == [migrated["limit"]]
    assert Limit.objects.get(pk=migrated["tainted limit"]).regression is None


def test_what_was_withdrawn_says_why(migrated: dict[str, int]) -> None:
    assert regression_of(migrated, "withdrawn").withdrawal == "not found"
    assert Regression.objects.exclude(withdrawal="").count() == 1


def test_only_a_rest_that_is_proved_is_residual(migrated: dict[str, int]) -> None:
    assert [regression.pk for regression in Regression.objects.filter(residual=True)] == [migrated["rest"]]


def test_a_delivery_keeps_its_attempts() -> None:
    delivery = Delivery.objects.get()
    assert (delivery.attempt, delivery.lease_until) == (3, None)
    # What was reported before stays so, and no old regression is reminded of all at once.
    assert delivery.reported_state in ("confirmed", "recovered")
    assert delivery.channel.remind_days == 0
