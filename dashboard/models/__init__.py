"""The tables. One file per subject; docs/schema.md describes them, docs/glossary.md defines their names."""

from dashboard.models.access import Action, ApiToken, Membership
from dashboard.models.alerts import AlertRule, Channel, Delivery, Snooze
from dashboard.models.audit import AuditEntry
from dashboard.models.claims import Claim, ClaimMeasurement, ClaimsFile
from dashboard.models.configurations import Configuration
from dashboard.models.environments import Environment
from dashboard.models.experiments import Experiment, ExperimentPair
from dashboard.models.failed_jobs import FailedJob
from dashboard.models.forges import ForgeConnection, ForgeDelivery, RepositoryPoll
from dashboard.models.guards import GuardResult
from dashboard.models.kept_files import KeptFile
from dashboard.models.limits import Limit
from dashboard.models.machines import Heartbeat, JoinCode, Machine, Pool
from dashboard.models.outbox import OutboxMessage
from dashboard.models.pictures import PictureLink
from dashboard.models.posted_documents import PostedDocument
from dashboard.models.projects import Backlog, Case, Commit, FormerName, Project, Schedule, Trigger
from dashboard.models.pull_requests import Check, CheckedCase, PullRequest
from dashboard.models.regressions import Change, Regression, RegressionExperiment
from dashboard.models.repository_tests import RepositoryTest
from dashboard.models.retention import DroppedDetail
from dashboard.models.revisions import Revision
from dashboard.models.runs import Document, Run, RunCost, RunLog, Telemetry
from dashboard.models.sentinels import Sentinel, SentinelPoint
from dashboard.models.series import Metric, Point, Series, SeriesLatest
from dashboard.models.throttles import Throttle
from dashboard.models.triage import Triage

__all__ = [
    "Action",
    "AlertRule",
    "ApiToken",
    "AuditEntry",
    "Backlog",
    "Case",
    "Change",
    "Channel",
    "Check",
    "CheckedCase",
    "Claim",
    "ClaimMeasurement",
    "ClaimsFile",
    "Commit",
    "Configuration",
    "Delivery",
    "Document",
    "DroppedDetail",
    "Environment",
    "Experiment",
    "ExperimentPair",
    "FailedJob",
    "ForgeConnection",
    "ForgeDelivery",
    "FormerName",
    "GuardResult",
    "Heartbeat",
    "JoinCode",
    "KeptFile",
    "Limit",
    "Machine",
    "Membership",
    "Metric",
    "OutboxMessage",
    "PictureLink",
    "Point",
    "Pool",
    "PostedDocument",
    "Project",
    "PullRequest",
    "Regression",
    "RegressionExperiment",
    "RepositoryPoll",
    "RepositoryTest",
    "Revision",
    "Run",
    "RunCost",
    "RunLog",
    "Schedule",
    "Sentinel",
    "SentinelPoint",
    "Series",
    "SeriesLatest",
    "Snooze",
    "Telemetry",
    "Throttle",
    "Triage",
    "Trigger",
]
