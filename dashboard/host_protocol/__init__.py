"""What the site and its hosts say to each other; free of Django, since a host has none.

docs/hosts.md describes the calls; `versions` says which hosts a site works with.
"""

from dashboard.host_protocol.assignments import (
    Assignment,
    CountedAnswer,
    ExperimentAssignment,
    Lease,
    OtherMetric,
    PairMeasured,
    RunAssignment,
    SideAssignment,
)
from dashboard.host_protocol.kept_files import files_problem, files_version, path_problem
from dashboard.host_protocol.message_fields import (
    MessageError,
    MessageFields,
    holds_unstorable,
    read_message,
)
from dashboard.host_protocol.messages import (
    assignment_message,
    pair_message,
    read_assignment,
    read_counted,
    read_counted_answer,
    read_lease,
    read_pair,
)
from dashboard.host_protocol.versions import OLDEST_PROTOCOL, PROTOCOL

__all__ = [
    "OLDEST_PROTOCOL",
    "PROTOCOL",
    "Assignment",
    "CountedAnswer",
    "ExperimentAssignment",
    "Lease",
    "MessageError",
    "MessageFields",
    "OtherMetric",
    "PairMeasured",
    "RunAssignment",
    "SideAssignment",
    "assignment_message",
    "files_problem",
    "files_version",
    "holds_unstorable",
    "pair_message",
    "path_problem",
    "read_assignment",
    "read_counted",
    "read_counted_answer",
    "read_lease",
    "read_message",
    "read_pair",
]
