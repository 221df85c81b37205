"""What a person would decide of everything that was planted, beside what Paceline decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Regression
from dashboard.regressions.decision.series_kinds import TIME

Entry = Mapping[str, Any]
CAUSE = "cause"
# What is planted of these kinds makes something worse.
CAUSES = ("regression", "toggle")


def decided(result: Entry) -> list[dict[str, Any]]:
    """A row for each planted event, and one for each regression that names a commit where nothing is."""
    rows = [JUDGES[entry["kind"]](entry, result) for entry in result["planted"]]
    places = {entry["commit"] for entry in result["planted"]}
    switches = [entry for entry in result["planted"] if entry["kind"] == "toggle"]
    back = {entry["repaired_by"]: entry for entry in switches if "repaired_by" in entry}
    others = [one for one in result["regressions"] if culprit(one) not in places]
    return rows + [of_other(one, back.get(culprit(one))) for one in others]


def row(commit: str, event: str, person: str, paceline: str, *, right: bool) -> dict[str, Any]:
    return {"commit": commit, "event": event, "person": person, "paceline": paceline, "right": right}


def culprit(regression: Entry) -> str:
    """The one commit that a regression names: that of a merged branch, where a merge brought it."""
    return str(regression["culprit"] or regression["first_bad"])


def of_regression(entry: Entry, result: Entry) -> dict[str, Any]:
    found = [one for one in result["regressions"] if culprit(one) == entry["commit"]]
    right = len(found) == 1 and all(is_told(one, entry) for one in found)
    person = f"{entry['metric']} {entry['percent']:+.0f}%, {entry['phase']}, {entry['function']}"
    if "repaired_by" in entry:
        person += f", repaired by {entry['repaired_by'][:10]}"
    if CAUSE in entry:
        person += f", {entry[CAUSE]}"
    said = "; ".join(in_words(one) for one in found) or "nothing"
    return row(entry["commit"], entry.get("event", "regression"), person, said, right=right)


def is_told(one: Entry, entry: Entry) -> bool:
    """Is the regression proved, and does it say of its cause all that a person would?"""
    suspects = one["suspects"]
    return (
        one["state"] == Regression.State.CONFIRMED
        and (one["metric"], one["phase"]) == (entry["metric"], entry["phase"])
        and bool(suspects)
        # A method's name has its class before it.
        and suspects[0]["function"].rpartition(".")[2] == entry["function"]
        and one["recovered_by"] == entry.get("repaired_by")
        and (CAUSE not in entry or one[CAUSE] == entry[CAUSE])
    )


def of_toggle(entry: Entry, result: Entry) -> dict[str, Any]:
    """An optimization that was switched off: one proved regression, whose phase is the optimization's own."""
    found = [one for one in result["regressions"] if culprit(one) == entry["commit"]]
    said = "; ".join(in_words(one) for one in found) or "nothing"
    right = len(found) == 1 and found[0]["state"] == Regression.State.CONFIRMED
    right = right and is_within(found[0]["phase"], entry["phase"])
    person = f"{entry['phase']}: {entry['claim']}"
    return row(entry["commit"], entry["event"], person, said, right=right)


def is_within(phase: str, expected: str) -> bool:
    """Is it that phase, or one nested in it, or the one around it?"""
    return f"{phase}/".startswith(f"{expected}/") or f"{expected}/".startswith(f"{phase}/")


def of_other(one: Entry, switched: Entry | None) -> dict[str, Any]:
    """Blamed where nothing got slower. What is switched on again may cost something else, such as memory."""
    if switched is None:
        return row(culprit(one), "nothing changed", "nothing", in_words(one), right=False)
    event = f"{switched['event'].removesuffix(' off')} on again"
    right = one["state"] == Regression.State.CONFIRMED and one["metric"] not in TIME
    return row(culprit(one), event, "no slower; what else it costs", in_words(one), right=right)


def of_improvement(entry: Entry, result: Entry) -> dict[str, Any]:
    told = [one for one in result["regressions"] if culprit(one) == entry["commit"]]
    found = [one for one in result["improvements"] if one["commit"] == entry["commit"]]
    said = "; ".join(in_words(one) for one in (*told, *found)) or "nothing"
    person = f"{entry['metric']} {entry['percent']:+.0f}%, {entry['phase']}; nobody is told"
    return row(entry["commit"], "improvement", person, said, right=bool(found) and not told)


def of_broken(entry: Entry, result: Entry) -> dict[str, Any]:
    blamed = [one for one in result["regressions"] if culprit(one) == entry["commit"]]
    tried = [run for run in result["runs"] if run["commit"] == entry["commit"]]
    said = "; ".join(in_words(one) for one in blamed) or "not blamed"
    if tried:
        said += f"; its run {tried[0]['state']}"
    right = not blamed and all(run["state"] == "failed" for run in tried)
    return row(entry["commit"], entry["event"], "left out, not blamed", said, right=right)


def of_definition(entry: Entry, result: Entry) -> dict[str, Any]:
    """The commit lies in no regression's range, and what is measured from it on is another case."""
    place = {commit: number for number, commit in enumerate(result["commits"])}
    at = place[entry["commit"]]
    around = [one for one in result["regressions"] if place[one["last_good"]] < at <= place[one["first_bad"]]]
    done = [run for run in result["runs"] if run["state"] == "done"]
    before = {run["case"] for run in done if place[run["commit"]] < at}
    after = {run["case"] for run in done if place[run["commit"]] >= at}
    said = "; ".join(in_words(one) for one in around) or "no regression"
    said += f"; {', '.join(sorted(after - before))} is new" if after - before else ""
    right = not around and bool(after) and not before & after
    return row(entry["commit"], entry["event"], "a new series, no regression", said, right=right)


JUDGES = {
    "regression": of_regression,
    "toggle": of_toggle,
    "improvement": of_improvement,
    "broken": of_broken,
    "definition": of_definition,
}


def grouping(result: Entry) -> dict[str, float] | None:
    """How near to one regression for each cause, and one cause in each regression; None without a cause.

    A regression has a cause where it names its commit, or leaves it in its range. A cause that was missed
    counts as none.
    """
    place = {commit: number for number, commit in enumerate(result["commits"])}
    causes = [entry["commit"] for entry in result["planted"] if entry["kind"] in CAUSES]
    if not causes:
        return None
    held = [[cause for cause in causes if has(one, cause, place)] for one in result["regressions"]]
    found = [one for one in held if one]
    total = sum(map(len, found))
    return {
        "regressions_per_cause": round(total / len(causes), 2),
        "causes_per_regression": round(total / len(found), 2) if found else 0.0,
    }


def has(one: Entry, cause: str, place: Mapping[str, int]) -> bool:
    if one["culprit"]:
        return bool(one["culprit"] == cause)
    return place[one["last_good"]] < place[cause] <= place[one["first_bad"]]


def table(rows: Sequence[Entry]) -> list[str]:
    """The rows for people; the first line names the columns."""
    cells = [("commit", "planted", "a person", "Paceline", "")]
    cells += [
        (
            one["commit"][:10],
            one["event"],
            one["person"],
            one["paceline"],
            "right" if one["right"] else "WRONG",
        )
        for one in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def in_words(found: Entry) -> str:
    """What was found at a commit: how large, which phase, which function, how sure, why."""
    percent = found["change_percent"]
    said = f"{found['metric']} {'from 0' if percent is None else f'{percent:+.0f}%'}"
    if found.get("phase"):
        said += f", {found['phase']}"
    if found.get("suspects"):
        said += f", {found['suspects'][0]['function']}"
    if found.get("recovered_by"):
        said += f", repaired by {found['recovered_by'][:10]}"
    if found.get(CAUSE) and found[CAUSE] != Regression.Cause.CODE:
        said += f", {found[CAUSE]}"
    return f"{said} ({found['state']})" if "state" in found else said
