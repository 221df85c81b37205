"""Messages between site and host, to JSON and back; either end reads the other's as untrusted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

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
from dashboard.host_protocol.kept_files import files_problem
from dashboard.host_protocol.message_fields import (
    LARGEST_KEY,
    LARGEST_SMALL,
    LONGEST_PATH,
    LONGEST_WORD,
    MessageError,
    MessageFields,
)

MOST_OTHERS = 50
MOST_SWEPT = 1_000
# Of a window's steps a pair keeps so many; longer ones a few steps at a time.
MOST_STEPS = 200
LONGEST_UNIT = 30
# A repetition counts in two processes at most.
MOST_COUNTERS, MOST_COUNTINGS = 200, 2
# Of JSON: the points of two sweeps, each with the seconds of every phase.
LONGEST_SWEEPS = 2**20
BETTER = ("lower", "higher")
# Of these metrics pairs tell beside the one that is weighed: what nobody wants to pay a faster step with.
GUARDING_KINDS = ("memory", "quality")
# Beside a quality they tell what became of the step: faster because it learns less is one story.
PACE = "step_time"
KINDS = {RunAssignment: "run", ExperimentAssignment: "experiment"}


def lease_message(lease: Lease) -> dict[str, Any]:
    return {"key": lease.key, "attempt": lease.attempt, "token": str(lease.token)}


def read_lease(fields: MessageFields) -> Lease:
    try:
        token = UUID(fields.text("token"))
    except ValueError as error:
        raise MessageError(f"{fields.path}.token must be a UUID.") from error
    return Lease(
        fields.integer("key", most=LARGEST_KEY), fields.integer("attempt", most=LARGEST_SMALL), token
    )


def assignment_message(assignment: Assignment) -> dict[str, Any]:
    message = {
        **asdict(assignment),
        "kind": KINDS[type(assignment)],
        "lease": lease_message(assignment.lease),
    }
    # Most projects keep none.
    if not assignment.files:
        del message["files"]
    return message


def read_assignment(fields: MessageFields) -> Assignment:
    """The claimed run or experiment. Fields that a newer site has added are ignored."""
    kind = fields.text("kind")
    if kind == "run":
        return RunAssignment(
            lease=read_lease(fields.inside("lease")),
            project=fields.text("project"),
            commit=fields.text("commit"),
            benchmark=fields.text("benchmark"),
            params=fields.mapping("params"),
            case_key=fields.text("case_key"),
            manifest=fields.optional_text("manifest"),
            machine=fields.text("machine"),
            repetitions=fields.integer("repetitions"),
            time_limit=fields.integer("time_limit"),
            quick=fields.flag("quick"),
            # A site of an earlier release names none.
            counted_at=fields.optional_text("counted_at") or "",
            files=_read_files(fields),
            on_branch=_read_on_branch(fields),
        )
    if kind == "experiment":
        return ExperimentAssignment(
            lease=read_lease(fields.inside("lease")),
            project=fields.text("project"),
            base=_read_side(fields.inside("base")),
            head=_read_side(fields.inside("head")),
            manifest=fields.optional_text("manifest"),
            metric=fields.text("metric"),
            phase=fields.optional_text("phase"),
            counted=fields.flag("counted"),
            in_turns=fields.flag("in_turns"),
            profiled=fields.flag("profiled"),
            machine=fields.text("machine"),
            pairs=fields.integer("pairs"),
            files=_read_files(fields),
            seeded="seeded" in fields.values and fields.flag("seeded"),
        )
    raise MessageError(f"This host can't measure {kind!r}: update it to the site's version.")


def _read_files(fields: MessageFields) -> dict[str, str]:
    """The files that the site keeps; an earlier site sends none."""
    if "files" not in fields.values:
        return {}
    inside = fields.inside("files")
    files = {path: inside.text(path) for path in inside.values}
    if problem := files_problem(files):
        raise MessageError(f"files: {problem}")
    return files


def _read_side(fields: MessageFields) -> SideAssignment:
    return SideAssignment(
        fields.text("commit"),
        fields.text("benchmark"),
        fields.mapping("params"),
        fields.flag("quick"),
        _read_on_branch(fields),
    )


def _read_on_branch(fields: MessageFields) -> bool:
    """A site of an earlier release doesn't say it."""
    return "on_branch" not in fields.values or fields.flag("on_branch")


def pair_message(pair: PairMeasured) -> dict[str, Any]:
    return asdict(pair)


def read_pair(fields: MessageFields) -> PairMeasured:
    return PairMeasured(
        index=fields.integer("index"),
        base_first=fields.flag("base_first"),
        base=fields.optional_number("base"),
        head=fields.optional_number("head"),
        disturbed=fields.flag("disturbed"),
        seconds=fields.duration("seconds"),
        phases=fields.number_pairs("phases"),
        # A host of an earlier release sends none.
        typical_phases=fields.number_pairs("typical_phases") if fields.values.get("typical_phases") else {},
        steps=_read_steps(fields) if fields.values.get("steps") else {},
        sweeps=_read_sweeps(fields) if fields.small_mapping("sweeps", most=LONGEST_SWEEPS) else {},
        others=_read_others(fields) if "others" in fields.values else {},
        seed=fields.integer("seed", most=LARGEST_KEY) if fields.values.get("seed") is not None else None,
    )


def _read_steps(fields: MessageFields) -> dict[str, list[float]]:
    """Of the base and of the head alike; a host of an earlier release sends none."""
    inside = fields.inside("steps")
    steps = {side: inside.times(side, MOST_STEPS) for side in ("base", "head")}
    if len(steps["base"]) != len(steps["head"]) or len(inside.values) != len(steps):
        raise MessageError("steps must have as many of the base as of the head, and nothing else.")
    return steps


def _read_sweeps(fields: MessageFields) -> dict[str, Any]:
    """What was swept, and the points of both sides; what else a host says of these isn't read."""
    inside = fields.inside("sweeps")
    amount = inside.optional_number("amount")
    if amount is not None and amount <= 0:
        raise MessageError("sweeps.amount must be a positive number.")
    return {
        "parameter": inside.text("parameter", most=LONGEST_WORD),
        "amount": amount,
        **{side: _read_points(inside, side) for side in ("base", "head")},
    }


def _read_points(fields: MessageFields, side: str) -> list[dict[str, Any]]:
    points = fields.objects(side)
    if len(points) > MOST_SWEPT:
        raise MessageError(f"{fields.path}.{side} must have {MOST_SWEPT} points at most.")
    return [_read_point(point) for point in points]


def _read_point(point: MessageFields) -> dict[str, Any]:
    phases = point.inside("phases")
    return {
        "value": point.number("value"),
        "repetition": point.integer("repetition"),
        "steps": point.integer("steps", most=LARGEST_KEY),
        "seconds": point.duration("seconds"),
        "phases": {path: phases.duration(path) for path in phases.values},
        "waited": point.number("waited") if "waited" in point.values else 0.0,
    }


def _read_others(fields: MessageFields) -> dict[str, OtherMetric]:
    """A host of an earlier release sends none."""
    others = fields.inside("others")
    if len(others.values) > MOST_OTHERS or any(len(name) > LONGEST_WORD for name in others.values):
        raise MessageError(f"others must have {MOST_OTHERS} members at most, with short names.")
    return {name: _read_other(name, others.inside(name)) for name in others.values}


def _read_other(name: str, fields: MessageFields) -> OtherMetric:
    other = OtherMetric(
        unit=fields.text("unit", most=LONGEST_UNIT),
        better=fields.text("better", most=LONGEST_UNIT),
        kind=fields.text("kind", most=LONGEST_UNIT),
        base=fields.number("base"),
        head=fields.number("head"),
    )
    kinds = (*GUARDING_KINDS, "time") if name == PACE else GUARDING_KINDS
    if other.better not in BETTER or other.kind not in kinds:
        raise MessageError(
            f"{fields.path} must say lower or higher for better, and {' or '.join(GUARDING_KINDS)} for kind."
        )
    return other


def read_counted(fields: MessageFields) -> dict[str, Any]:
    """What is kept and asked of the document of a counted repetition; empty where a side has left none."""
    if not fields.values:
        return {}
    environment, ranks, profile = (
        fields.optional_inside(name) for name in ("environment", "ranks", "profile")
    )
    counted: dict[str, Any] = {
        "processes": [
            {"name": row.text("name"), "peak_memory": row.optional_number("peak_memory")}
            for row in fields.optional_objects("processes")
        ],
        "phases": [{"thread": row.text("thread")} for row in fields.optional_objects("phases")],
        "profile": {"functions": _read_functions(profile) if profile else []},
        "counters": _read_counters(fields),
    }
    if environment:
        counted["environment"] = {
            "path": environment.optional_text("path"),
            "memory_bytes": environment.optional_integer("memory_bytes", most=LARGEST_KEY),
        }
    if ranks:
        counted["ranks"] = {"world_size": ranks.integer("world_size")}
    return counted


def _read_counters(fields: MessageFields) -> list[dict[str, Any]]:
    """A host of an earlier release sends none."""
    rows = fields.optional_objects("counters")
    if len(rows) > MOST_COUNTERS:
        raise MessageError(f"counters must be {MOST_COUNTERS} at most.")
    return [_read_counter(row) for row in rows]


def _read_counter(row: MessageFields) -> dict[str, Any]:
    if (better := row.text("better", most=LONGEST_UNIT)) not in BETTER:
        raise MessageError(f"{row.path} must say lower or higher for better.")
    return {
        "name": row.text("name", most=LONGEST_WORD + len(":") + LONGEST_PATH),
        "unit": row.text("unit", most=LONGEST_UNIT),
        "better": better,
        "headline": row.flag("headline"),
        "samples": row.counts("samples", MOST_COUNTINGS),
    }


def read_counted_answer(fields: MessageFields) -> CountedAnswer:
    # A site of an earlier release asks for no more.
    again = "again" in fields.values and fields.flag("again")
    return CountedAnswer(in_turns=fields.flag("in_turns"), again=again)


def _read_functions(profile: MessageFields) -> list[dict[str, Any]]:
    return [
        {
            "function": row.text("function"),
            "file": row.text("file"),
            "line": row.integer("line"),
            "calls": row.number("calls"),
            "self": row.number("self"),
            "cumulative": row.number("cumulative"),
            "phase": row.optional_text("phase"),
        }
        for row in profile.optional_objects("functions")
    ]
