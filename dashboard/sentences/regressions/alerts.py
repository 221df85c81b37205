"""What a message says of a regression, of a digest and of a test: the words of all kinds of channels."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.models import Commit, Delivery, Regression
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.change_sizes import format_levels
from dashboard.sentences.formatting.metric_labels import series_label
from dashboard.sentences.regressions import regressions as sentences
from dashboard.sentences.regressions.learning import is_loss_of_quality

Event = Delivery.Event

MOST_SUSPECTS = 5
MOST_OPERATIONS = 3
_HEADS = {
    Event.OPENED: "Regression",
    Event.CONFIRMED: "Confirmed",
    Event.RECOVERED: "Recovered",
    Event.REOPENED: "Back",
    Event.WITHDRAWN: "Withdrawn",
    Event.CLOSED: "Put away",
    Event.REMINDER: "Waits for triage",
}
TEST_TITLE = "Test message"


def message_head(regression: Regression, event: str) -> str:
    """What somebody has looked at already is reported again only as it has grown."""
    grown = event == Event.REMINDER and regression.triaged
    return "Has grown" if grown else _HEADS[Event(event)]


def message_title(regression: Regression, event: str) -> str:
    """`Regression in snakes: step time +38 % [35, 41]`."""
    head = message_head(regression, event)
    if event == Event.OPENED and regression.state != Regression.State.CONFIRMED:
        head = "Suspicion"
    return f"{head} in {regression.project.slug}: {sentences.regression_headline(regression)}"


def message_subject(regression: Regression, event: str) -> str:
    """The subject of a mail: `[snakes] step time +38 % [35, 41] since abc1234567`."""
    headline = sentences.regression_headline(regression)
    place = brief_place(regression)
    head = "" if event == Event.OPENED else f"{message_head(regression, event)}: "
    return f"[{regression.project.slug}] {head}{headline} {place}"


def brief_place(regression: Regression) -> str:
    """`since abc1234567`, or the cause where no commit is to blame."""
    named = regression.names_commit
    return sentences.describe_place(regression, brief=True) if named else regression.cause


def message_sentence(regression: Regression, event: str) -> str:
    """The first line: what happened to the regression, and what it is."""
    title = sentences.regression_title(regression)
    if regression.recovered_by is not None:
        # A channel may hear of it only now that it is proved.
        title = f"{title}; repaired by {repairing_commit(regression.recovered_by)}"
    match event:
        case Event.CONFIRMED:
            return f"Confirmed: {title}"
        case Event.RECOVERED:
            return f"{short_line(regression)} has recovered: {repair_text(regression)}"
        case Event.REOPENED:
            return f"It is back: {title}"
        case Event.WITHDRAWN:
            return f"{short_line(regression)} is none: {withdrawal_text(regression)}"
        case Event.CLOSED:
            return f"{short_line(regression)} was triaged as {regression.triaged}"
        case Event.REMINDER:
            return f"{'It has grown' if regression.triaged else 'Nobody has triaged it yet'}: {title}"
    return title


def event_of_state(regression: Regression) -> str:
    """The event that says how it stands now."""
    if regression.withdrawn_at or regression.state == Regression.State.REFUTED:
        return Event.WITHDRAWN
    if regression.triaged == Regression.Triaged.NOT_REAL:
        return Event.WITHDRAWN
    if regression.recovered_by_id:
        return Event.RECOVERED
    return Event.CLOSED if regression.is_triaged_away else Event.OPENED


def short_line(regression: Regression) -> str:
    """`step time +38 % [35, 41] since abc1234567`: which regression, in a few words."""
    return f"{sentences.regression_headline(regression)} {brief_place(regression)}"


def repair_text(regression: Regression) -> str:
    """`abc1234567 “Sample in place” brought the level back`."""
    commit = regression.recovered_by
    return f"{repairing_commit(commit)} brought the level back" if commit else "the level is back"


def repairing_commit(commit: Commit) -> str:
    return f"{commit.short} “{commit.subject}”"


def withdrawal_text(regression: Regression) -> str:
    """Why what was reported is taken back."""
    if regression.triaged == Regression.Triaged.NOT_REAL:
        return "a person has called it not real"
    if regression.state == Regression.State.REFUTED:
        return "interleaved runs of both commits don't show it"
    return sentences.withdrawal_sentence(regression)


def message_facts(regression: Regression) -> list[tuple[str, str]]:
    """(name, text) of what a person wants to know first."""
    good = regression.last_good
    return [
        ("project", regression.project.slug),
        ("case", f"{regression.series.case} on pool {regression.series.pool}"),
        ("metric", _metric_fact(regression)),
        _commit_fact(regression),
        ("last good", f"{good.short} {good.subject}"),
        ("state", _state_fact(regression)),
    ]


def memory_fact(regression: Regression) -> list[tuple[str, str]]:
    """That its memory grows faster; for one message, since its changes are read for it."""
    changes = regression.changes.select_related("series__metric")
    growth = sentences.describe_memory_growth(regression, changes)
    return [("memory", growth)] if growth else []


def _metric_fact(regression: Regression) -> str:
    if is_loss_of_quality(regression):
        return f"{series_label(regression.series)}: {format_levels(regression)}"
    return f"{sentences.describe_change(regression)}: {format_levels(regression)}"


def _commit_fact(regression: Regression) -> tuple[str, str]:
    if not regression.names_commit:
        return "between", sentences.commit_range(regression)
    if regression.commits_left > 1:
        return "commit", sentences.describe_range(regression)
    blamed = regression.blamed
    merged = sentences.merged_words(regression)
    return "commit", f"{blamed.short} {blamed.subject} ({blamed.author}){merged}"


def _state_fact(regression: Regression) -> str:
    label = sentences.regression_state_label(regression)
    repaired = regression.recovered_by if label == "recovered" else None
    return f"{label} by {repaired.short}" if repaired else label


def suspect_lines(regression: Regression) -> list[str]:
    """`replay.py:41 push (is called 256 times per step instead of once and was changed in that commit)`."""
    lines = []
    for suspect in regression.suspects[:MOST_SUSPECTS]:
        said = sentences.suspect_words(regression, suspect)
        line = f"{suspect['file']}:{suspect.get('line', '')} {suspect['function']}"
        lines.append(f"{line} ({said})" if said else line)
    return lines


def operation_lines(regression: Regression) -> list[str]:
    return [sentences.describe_operation(row) for row in regression.operations[:MOST_OPERATIONS]]


def picture_text(regression: Regression) -> str:
    """What the picture shows, for who can't see it."""
    series = regression.series
    levels = format_levels(regression)
    return f"{series_label(series)} of {series.case} over the commits: {levels}"


def digest_title(project: str, counts: Sequence[tuple[str, int]]) -> str:
    """`Digest of snakes: 2 new, 1 recovered`."""
    named = [f"{numbers.format_number(count)} {name}" for name, count in counts if count]
    return f"Digest of {project}: {', '.join(named) or 'nothing new'}"


def sentence_of_test(project: str) -> str:
    return (
        f"This is a test of Paceline's alerts of {project}, asked for on the page of its channels. "
        "Nothing has happened."
    )
