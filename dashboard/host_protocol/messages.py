"""Messages between site and host, to JSON and back; either end reads the other's as untrusted."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from typing import Any, NoReturn
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

# As the columns of the site's tables hold them.
LARGEST_KEY, LARGEST_INTEGER, LARGEST_SMALL = 2**63 - 1, 2**31 - 1, 2**15 - 1
LARGEST_DURATION = 1e9
# As documents have numbers: of larger ones, or of such that are nearer to zero, a ratio may be infinite.
LARGEST_NUMBER, SMALLEST_NUMBER = 1e100, 1e-100
# In digits, a sign among them.
LONGEST_INTEGER = 20
MOST_ITEMS = 10_000
MOST_OTHERS = 50
MOST_SWEPT = 1_000
# Of a window's steps a pair keeps so many; longer ones a few steps at a time.
MOST_STEPS = 200
LONGEST_WORD = 100
LONGEST_UNIT = 30
# A repetition counts in two processes at most.
MOST_COUNTERS, MOST_COUNTINGS = 200, 2
# Of a phase.
LONGEST_PATH = 200
# Of JSON: the points of two sweeps, each with the seconds of every phase.
LONGEST_SWEEPS = 2**20
# What PostgreSQL keeps in no text.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# What a terminal obeys: sequences of colours and titles, and control characters other than blanks.
TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)|[\x00-\x08\x0e-\x1f\x7f-\x9f]"
)
BETTER = ("lower", "higher")
# Of these metrics pairs tell beside the one that is weighed: what nobody wants to pay a faster step with.
GUARDING_KINDS = ("memory", "quality")
# Beside a quality they tell what became of the step: faster because it learns less is one story.
PACE = "step_time"
KINDS = {RunAssignment: "run", ExperimentAssignment: "experiment"}


class MessageError(Exception):
    """A message can't be used; the sentence names the field."""


class MessageFields:
    """The fields of one JSON object, each read as the type it must have; MessageError where it hasn't."""

    def __init__(self, values: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(values, dict):
            raise MessageError(f"{path or 'The message'} must be an object.")
        self.values: dict[str, Any] = values

    def text(self, name: str, *, most: int | None = None) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            self._refuse(name, "must be a text")
        if most is not None and len(value) > most:
            self._refuse(name, f"must be {most} characters long at most")
        return value

    def printed_text(self, name: str, *, most: int | None = None) -> str:
        """A text that measured code may have printed, for people: without what their terminal would obey."""
        return TERMINAL_CODES.sub("", self.text(name, most=most))

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def optional_integer(self, name: str, *, most: int = LARGEST_INTEGER) -> int | None:
        return None if self.values.get(name) is None else self.integer(name, most=most)

    def integer(self, name: str, *, most: int = LARGEST_INTEGER) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            self._refuse(name, f"must be a whole number up to {most}")
        return value

    def number(self, name: str) -> float:
        return self._finite(name, self.values.get(name))

    def optional_number(self, name: str) -> float | None:
        return None if self.values.get(name) is None else self.number(name)

    def duration(self, name: str) -> float:
        """Seconds."""
        value = self.number(name)
        if not 0 <= value <= LARGEST_DURATION:
            self._refuse(name, f"must be a number of seconds up to {LARGEST_DURATION:g}")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            self._refuse(name, "must be true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if not isinstance(value, dict):
            self._refuse(name, "must be an object")
        return value

    def small_mapping(self, name: str, *, most: int) -> dict[str, Any]:
        """An object whose JSON has at most so many characters."""
        value = self.mapping(name)
        if len(json.dumps(value)) > most:
            self._refuse(name, f"must be {most} characters long at most")
        return value

    def flat_mapping(self, name: str, *, most: int) -> dict[str, str | int | bool | None] | None:
        """An object of at most so many plain values, or nothing: what people read, kept as it came."""
        if self.values.get(name) is None:
            return None
        values = self.mapping(name)
        plain = all(
            len(key) <= LONGEST_WORD and (value is None or isinstance(value, int) or is_short_text(value))
            for key, value in values.items()
        )
        if not plain or len(values) > most:
            self._refuse(name, f"must be an object of at most {most} short texts and whole numbers")
        return values

    def texts(self, name: str, *, most: int) -> list[str]:
        """A list of texts of at most so many characters."""
        value = self.values.get(name)
        texts = (
            isinstance(value, list)
            and len(value) <= MOST_ITEMS
            and all(isinstance(item, str) and len(item) <= most for item in value)
        )
        if not isinstance(value, list) or not texts:
            self._refuse(name, f"must be a list of texts of at most {most} characters")
        return value

    def durations(self, name: str, *, most: int) -> dict[str, float]:
        """An object of at most so many seconds, by short names; empty where it is missing."""
        if self.values.get(name) is None:
            return {}
        seconds = {key: self.inside(name).number(key) for key in self.mapping(name)}
        if len(seconds) > most or not all(
            is_short_text(key) and 0 <= value <= LARGEST_DURATION for key, value in seconds.items()
        ):
            self._refuse(name, f"must be an object of at most {most} seconds with short names")
        return seconds

    def objects(self, name: str) -> list[MessageFields]:
        value = self.values.get(name)
        if not isinstance(value, list):
            self._refuse(name, "must be a list of objects")
        return [MessageFields(item, self._full_path(name)) for item in value]

    def optional_objects(self, name: str) -> list[MessageFields]:
        return [] if self.values.get(name) is None else self.objects(name)

    def integers(self, name: str) -> list[int]:
        value = self.values.get(name)
        if not isinstance(value, list):
            self._refuse(name, "must be a list of whole numbers")
        return [MessageFields({name: item}, self.path).integer(name, most=LARGEST_KEY) for item in value]

    def inside(self, name: str) -> MessageFields:
        return MessageFields(self.values.get(name), self._full_path(name))

    def optional_inside(self, name: str) -> MessageFields | None:
        return None if self.values.get(name) is None else self.inside(name)

    def check_texts(self) -> None:
        """Refuse what PostgreSQL can't keep, in whatever is read from here later."""
        for name, value in self.values.items():
            if UNSTORABLE.search(name):
                raise MessageError("The message has a NUL or half a character in a name.")
            if holds_unstorable(value):
                self._refuse(name, "must hold no NUL and no half of a character")

    def number_pairs(self, name: str) -> dict[str, tuple[float, float]]:
        """An object whose names are those of phases, and whose values are lists of two numbers."""
        pairs = {}
        if len(self.mapping(name)) > MOST_ITEMS:
            self._refuse(name, f"must have {MOST_ITEMS} members at most")
        for key, value in self.mapping(name).items():
            if len(key) > LONGEST_PATH:
                self._refuse(name, f"must have names of {LONGEST_PATH} characters at most")
            if not isinstance(value, list) or len(value) != 2:
                self._refuse(f"{name}.{key}", "must be a list of two numbers")
            pairs[key] = (self._finite(f"{name}.{key}", value[0]), self._finite(f"{name}.{key}", value[1]))
        return pairs

    def times(self, name: str, most: int) -> list[float]:
        """A list of so many positive numbers at most."""
        values = self.values.get(name)
        if not isinstance(values, list) or len(values) > most:
            self._refuse(name, f"must be a list of {most} positive numbers at most")
        times = [self._finite(name, value) for value in values]
        if min(times, default=1.0) <= 0:
            self._refuse(name, "must have positive numbers alone")
        return times

    def counts(self, name: str, most: int) -> list[float]:
        """One or more finite numbers that aren't negative."""
        value = self.values.get(name)
        if not isinstance(value, list) or not 0 < len(value) <= most:
            self._refuse(name, f"must be a list of one to {most} numbers")
        numbers = [self._finite(name, number) for number in value]
        if min(numbers) < 0:
            self._refuse(name, "must have no negative numbers")
        return numbers

    def _finite(self, name: str, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > LARGEST_NUMBER:
            self._refuse(name, f"must be a finite number up to {LARGEST_NUMBER:g}")
        return float(value) if abs(value) >= SMALLEST_NUMBER else 0.0

    def _full_path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refuse(self, name: str, problem: str) -> NoReturn:
        raise MessageError(f"{self._full_path(name)} {problem}.")


def is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_WORD and value.isprintable()


def read_message(data: bytes) -> MessageFields:
    """A message from its bytes; MessageError where it is no JSON object, or none that can be stored."""
    try:
        values = json.loads(
            data, parse_constant=_refuse_constant, parse_float=_finite_float, parse_int=_storable_integer
        )
    except (ValueError, RecursionError) as error:
        raise MessageError("The message is no JSON with numbers that can be stored.") from error
    fields = MessageFields(values)
    fields.check_texts()
    return fields


def holds_unstorable(value: Any) -> bool:
    """Whether a text or a name of parsed JSON, however deep, is one that PostgreSQL can't keep."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            if UNSTORABLE.search(inner):
                return True
        elif isinstance(inner, dict):
            waiting += [*inner, *inner.values()]
        elif isinstance(inner, list):
            waiting += inner
    return False


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _storable_integer(text: str) -> int:
    # Beyond it no column holds it, and of thousands of digits Python reads none back.
    number = int(text) if len(text) <= LONGEST_INTEGER else 2 * LARGEST_KEY
    if abs(number) > LARGEST_KEY:
        raise ValueError(text[:LONGEST_INTEGER])
    return number


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
        fields.text("commit"), fields.text("benchmark"), fields.mapping("params"), fields.flag("quick")
    )


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
        "name": row.text("name", most=LONGEST_WORD),
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
