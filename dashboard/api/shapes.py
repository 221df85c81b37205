"""What several answers of the API have in common.

Shapes are pydantic's own models: ninja's look at each member of each answer in Python, for what only rows of
a database need, which took a third of a list.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self, get_args

from django.db.models import Model
from django.http import HttpRequest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from dashboard.models import Commit, Configuration, Metric

# What measured code, a host or a detector has said: its members are described where it is made.
Json = dict[str, Any]
# The type of a problem with a field that a request has and its shape lacks, where another one is near.
UNKNOWN_FIELD = "unknown_field"


@dataclass(eq=False)
class OneOf:
    """Makes of a text a choice: `Annotated[str, OneOf(Run.State.values)]`.

    Not Django's own classes of choices: five of them are called State, and the description knows a name once.
    """

    values: Sequence[str]

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.literal_schema([str(value) for value in self.values])


class Body(BaseModel):
    """What a request says. A misspelt field is refused, not left out; so is a value of another JSON type."""

    # Unless strict, pydantic reads "3" and true as numbers, and 1 and "yes" as true.
    model_config = ConfigDict(extra="forbid", strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _read_whole_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """JSON has one kind of number: 3.0 is the whole number 3."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = {annotation, *get_args(annotation)}
        whole = isinstance(value, float) and value.is_integer() and int in kinds and float not in kinds
        return int(value) if whole else value

    @model_validator(mode="wrap")
    @classmethod
    def _suggest_fields(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Of a misspelt field the one that may be meant."""
        try:
            return read(values)
        except ValidationError as error:
            problems = [_suggest_field(problem, cls.model_fields) for problem in error.errors()]
            raise ValidationError.from_exception_data(error.title, problems) from None


def _suggest_field(problem: ErrorDetails, known: Collection[str]) -> InitErrorDetails:
    kind, message, location = problem["type"], problem["msg"], problem["loc"]
    near = (
        get_close_matches(str(location[0]), known, 1)
        if (kind, len(location)) == ("extra_forbidden", 1)
        else []
    )
    if near:
        kind, message = UNKNOWN_FIELD, f"there is no field of that name: did you mean {near[0]}?"
    sentence = PydanticCustomError(kind, "{message}", {"message": message})
    return InitErrorDetails(type=sentence, loc=location, input=problem["input"])


class CommitName(BaseModel):
    """A commit, as others name it."""

    hash: str
    subject: str
    author: str
    position: int = Field(description="First-parent commits before it on its branch.")


class Configured(BaseModel):
    """What is measured, and how: only what has the same may be compared."""

    case: str = Field(description="The benchmark with its parameters: `snake_dqn[variant=optimized]`.")
    benchmark: str
    params: Json
    version: int = Field(description="The benchmark's version.")
    pool: str
    quick: bool


class MetricName(BaseModel):
    name: str
    unit: str
    better: str = Field(description="`lower` or `higher`.")
    kind: str


def describe_commit_name(commit: Commit) -> CommitName:
    return CommitName(
        hash=commit.hash, subject=commit.subject, author=commit.author, position=commit.position
    )


def configured_members(configuration: Configuration) -> dict[str, Any]:
    """Of a configuration that was read with its case and pool."""
    case = configuration.case
    return {
        "case": str(case),
        "benchmark": case.benchmark,
        "params": case.params,
        "version": configuration.version,
        "pool": configuration.pool.name,
        "quick": configuration.quick,
    }


def describe_metric_name(metric: Metric) -> MetricName:
    return MetricName(name=metric.name, unit=metric.unit, better=metric.better, kind=metric.kind)


def page_address(request: HttpRequest, row: Model) -> str:
    """Where people look at it."""
    return request.build_absolute_uri(row.get_absolute_url())  # type: ignore[attr-defined]


def case_conditions(spelling: str, path: str) -> dict[str, Any]:
    """What finds the rows of a case as it is spelt; `path` leads to the case."""
    benchmark, _, key = spelling.removesuffix("]").partition("[")
    return {f"{path}__benchmark": benchmark, f"{path}__key": key}
