"""What an archive holds: its tables in their order, so that what a row refers to stands before it.

A column is a field of the model. A reference is the number of a row of another table of the archive, from 0.
Never in it: secrets, accounts, and what belongs to this site alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db.models import Field, Model, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from dashboard.models import (
    AlertRule,
    Case,
    Change,
    Channel,
    Check,
    CheckedCase,
    Claim,
    ClaimMeasurement,
    ClaimsFile,
    Commit,
    Configuration,
    Delivery,
    Document,
    Environment,
    Experiment,
    ExperimentPair,
    GuardResult,
    KeptFile,
    Limit,
    Machine,
    Metric,
    Point,
    Pool,
    PostedDocument,
    Project,
    PullRequest,
    Regression,
    RegressionExperiment,
    Run,
    RunCost,
    RunLog,
    Sentinel,
    SentinelPoint,
    Series,
    SeriesLatest,
    Snooze,
    Telemetry,
    Triage,
    Trigger,
)
from dashboard.secrets import EncryptedField

# The number counts up where a reader of the one before would misunderstand; docs/export.md has the history.
# A column or a table that only comes new needs no number: where it is missing, its default stands.
FORMAT = "paceline.export/1"

LEASE = frozenset({"lease", "lease_until", "activity"})
MEASURED = "configuration__case__project"
ENDED_RUNS = Q(state__in=Run.TERMINAL)
ENDED_CHECKS = (Check.State.DONE, Check.State.CANCELLED)
OF_ENDED_RUNS = Q(run__state__in=Run.TERMINAL)


@dataclass(frozen=True, eq=False)
class ArchiveTable:
    """`project_path`: the lookup from a row to its project. Empty: rows of the whole site, of which the
    archive holds those that the project uses, found again by the fields of `natural_key`. `packed`: a line
    holds many points of one series, column by column.
    """

    name: str
    model: type[Model]
    project_path: str = ""
    rows: Q = field(default_factory=Q)
    left_out: frozenset[str] = frozenset()
    natural_key: tuple[str, ...] = ()
    packed: bool = False
    # What is written of a field instead of its own value.
    expressions: dict[str, Combinable] = field(default_factory=dict)
    # What these fields of an imported row are, whatever they were.
    imported_as: dict[str, Any] = field(default_factory=dict)
    # What files of earlier versions call a column -> its name now.
    former_columns: dict[str, str] = field(default_factory=dict)

    def select_rows(self, project: Project) -> QuerySet[Any]:
        manager: QuerySet[Any] = self.model._default_manager.all()
        if not self.project_path:
            return manager.filter(pk__in=used_keys(self.model, project)).order_by(*self.natural_key)
        return manager.filter(self.rows, **{self.project_path: project.pk}).order_by("pk")


PROJECT = ArchiveTable(
    "project",
    Project,
    "pk",
    left_out=frozenset(
        {
            *("slug", "former_names", "mirror_name", "removed_slug", "archive_sha256", "imported_at"),
            # Who may show it is another site's to say.
            "embed_origins",
            # A copy doesn't begin to measure by itself, and quiet hours follow from the policy.
            *("poll_minutes", "quiet_from", "quiet_until", "claims_read_at"),
            *("repository_read_at", "repository_problem", "uses_account"),
        }
    ),
    # A machine of the same name may live here: a copy measures nothing on it by itself.
    expressions={"sentinels": Value(False)},
    imported_as={"sentinels": False},
)
POINT = ArchiveTable("point", Point, "series__configuration__case__project", OF_ENDED_RUNS, packed=True)

TABLES = (
    PROJECT,
    ArchiveTable("kept_file", KeptFile, "project"),
    ArchiveTable("pool", Pool, natural_key=("name",)),
    ArchiveTable(
        "machine",
        Machine,
        left_out=frozenset(
            {
                *("state", "token_hash", "joined_at", "agent_version", "protocol", "box", "created_at"),
                *("seen_at", "too_few_bytes"),
            }
        ),
        natural_key=("name",),
    ),
    ArchiveTable("environment", Environment, left_out=frozenset({"digest"}), natural_key=("digest",)),
    ArchiveTable("metric", Metric, natural_key=("name", "better")),
    ArchiveTable("commit", Commit, "project"),
    ArchiveTable("case", Case, "project"),
    ArchiveTable("configuration", Configuration, "case__project"),
    ArchiveTable("series", Series, MEASURED),
    # What is still to be resolved would be measured again.
    ArchiveTable(
        "trigger",
        Trigger,
        "project",
        ~Q(state=Trigger.State.RECEIVED),
        left_out=frozenset({"delivery"}),
    ),
    ArchiveTable("run", Run, MEASURED, ENDED_RUNS, left_out=LEASE),
    ArchiveTable("run_cost", RunCost, f"run__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("run_log", RunLog, f"run__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("document", Document, f"run__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("posted_document", PostedDocument, f"run__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("telemetry", Telemetry, f"run__{MEASURED}", OF_ENDED_RUNS),
    POINT,
    ArchiveTable("guard_result", GuardResult, f"series__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("experiment", Experiment, "project", Q(state__in=Experiment.TERMINAL), left_out=LEASE),
    ArchiveTable(
        "experiment_pair",
        ExperimentPair,
        "experiment__project",
        Q(experiment__state__in=Experiment.TERMINAL),
    ),
    ArchiveTable("claims_file", ClaimsFile, "project"),
    # Its newest measurement is one of a later table: it is found again.
    ArchiveTable("claim", Claim, "project", left_out=frozenset({"newest"})),
    ArchiveTable(
        "claim_measurement",
        ClaimMeasurement,
        "claim__project",
        ~Q(state=ClaimMeasurement.State.REQUESTED),
        former_columns={"asker": "requester"},
    ),
    # The comment is the other site's: a copy answers with one of its own.
    ArchiveTable(
        "pull_request",
        PullRequest,
        "project",
        left_out=frozenset({"comment_id"}),
        former_columns={"telling_until": "publishing_until"},
    ),
    ArchiveTable("check", Check, "project", Q(state__in=ENDED_CHECKS), former_columns={"told": "published"}),
    ArchiveTable(
        "checked_case",
        CheckedCase,
        "of__project",
        Q(of__state__in=ENDED_CHECKS, experiment__state__in=Experiment.TERMINAL),
    ),
    # Who triaged it stands in its triage; what is being proved isn't proved elsewhere.
    ArchiveTable("regression", Regression, "project", left_out=frozenset({"proving", "triaged_by"})),
    ArchiveTable(
        "regression_experiment",
        RegressionExperiment,
        "regression__project",
        Q(experiment__state__in=Experiment.TERMINAL),
    ),
    ArchiveTable("change", Change, f"series__{MEASURED}"),
    ArchiveTable("limit", Limit, f"series__{MEASURED}", OF_ENDED_RUNS),
    ArchiveTable("series_latest", SeriesLatest, f"series__{MEASURED}", OF_ENDED_RUNS),
    # Accounts are the site's: of a person the name is kept, as of one whom only a forge knows.
    ArchiveTable(
        "triage",
        Triage,
        "regression__project",
        expressions={"account": Coalesce("person__username", "account")},
        former_columns={"said_of": "merged_check"},
    ),
    ArchiveTable("snooze", Snooze, "regression__project"),
    ArchiveTable("sentinel", Sentinel, MEASURED),
    ArchiveTable("sentinel_point", SentinelPoint, f"sentinel__{MEASURED}", OF_ENDED_RUNS),
    # A copy tells nobody anything until somebody gives its secrets and turns it on.
    ArchiveTable(
        "channel",
        Channel,
        "project",
        left_out=frozenset({"enabled", "muted_until", "next_digest_at"}),
        imported_as={"enabled": False},
    ),
    ArchiveTable("alert_rule", AlertRule, "channel__project", former_columns={"tell": "notifies"}),
    # What is still to be sent is sent by the site that decided on it.
    ArchiveTable(
        "delivery",
        Delivery,
        "channel__project",
        Q(state__in=(Delivery.State.DELIVERED, Delivery.State.FAILED)),
        left_out=LEASE | {"opened"},
        former_columns={"told": "reported_state"},
    ),
)
# Which the first files of this format don't have.
LATER_TABLES = frozenset(
    {
        *("claims_file", "claim", "claim_measurement", "pull_request", "check", "checked_case"),
        *("delivery", "posted_document"),
    }
)
TABLE_OF_MODEL = {table.model: table for table in TABLES}


@cache
def archived_fields(table: ArchiveTable) -> tuple[Field[Any, Any], ...]:
    """The fields of a table's columns, in their order."""
    return tuple(
        column
        for column in table.model._meta.concrete_fields
        if column.name not in table.left_out
        and not isinstance(column, EncryptedField)
        and (referred_table(column) is not None if column.is_relation else not column.primary_key)
    )


def referred_table(column: Field[Any, Any]) -> ArchiveTable | None:
    """The table whose rows a column numbers; None for a value, and for what the archive doesn't hold.

    A row's project is the archive's own: it isn't written.
    """
    if not column.is_relation or column.related_model is Project:
        return None
    return TABLE_OF_MODEL.get(column.related_model)  # type: ignore[arg-type]


@cache
def referred_tables() -> frozenset[str]:
    """The names of the tables whose rows others refer to."""
    columns = (column for table in TABLES for column in archived_fields(table))
    return frozenset(found.name for column in columns if (found := referred_table(column)))


def used_keys(model: type[Model], project: Project) -> QuerySet[Any, Any]:
    """The keys of the site's rows of this model that the project's own rows refer to."""
    keys: list[QuerySet[Any, Any]] = [
        table.select_rows(project).order_by().values(column.name)
        for table in TABLES
        if table.project_path
        for column in archived_fields(table)
        if column.related_model is model
    ]
    if model is Pool:
        machines = Machine.objects.filter(pk__in=used_keys(Machine, project))
        keys.append(machines.values("pool"))
    return keys[0].union(*keys[1:])
