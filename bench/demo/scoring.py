"""What a person would decide of everything that was planted, beside what Paceline decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.management.demonstration_table import align_columns, culprit_of, describe_found

Entry = Mapping[str, Any]
CAUSE = "cause"
CONFIRMED = "confirmed"
# What is planted of these kinds makes something worse.
CAUSES = ("regression", "toggle")
TIME_METRICS = ("step_time", "throughput", "step_time_p99")


def score_planted(result: Entry) -> list[dict[str, Any]]:
    """A row for each planted event, and one for each regression that names a commit where nothing is."""
    rows = [SCORERS[entry["kind"]](entry, result) for entry in result["planted"]]
    planted = {entry["commit"] for entry in result["planted"]}
    switches = [entry for entry in result["planted"] if entry["kind"] == "toggle"]
    back = {entry["repaired_by"]: entry for entry in switches if "repaired_by" in entry}
    others = [regression for regression in result["regressions"] if culprit_of(regression) not in planted]
    return rows + [score_other(regression, back.get(culprit_of(regression))) for regression in others]


def score_row(commit: str, event: str, person: str, paceline: str, *, right: bool) -> dict[str, Any]:
    return {"commit": commit, "event": event, "person": person, "paceline": paceline, "right": right}


def regressions_at(commit: str, result: Entry) -> list[Entry]:
    return [regression for regression in result["regressions"] if culprit_of(regression) == commit]


def join_words(found: Sequence[Entry], nothing: str = "nothing") -> str:
    return "; ".join(map(describe_found, found)) or nothing


def score_regression(entry: Entry, result: Entry) -> dict[str, Any]:
    found = regressions_at(entry["commit"], result)
    right = len(found) == 1 and is_fully_explained(found[0], entry)
    person = f"{entry['metric']} {entry['percent']:+.0f}%, {entry['phase']}, {entry['function']}"
    if "repaired_by" in entry:
        person += f", repaired by {entry['repaired_by'][:10]}"
    if CAUSE in entry:
        person += f", {entry[CAUSE]}"
    event = entry.get("event", "regression")
    return score_row(entry["commit"], event, person, join_words(found), right=right)


def is_fully_explained(regression: Entry, entry: Entry) -> bool:
    """Whether the regression is proved, and says of its cause all that a person would."""
    suspects = regression["suspects"]
    return (
        regression["state"] == CONFIRMED
        and (regression["metric"], regression["phase"]) == (entry["metric"], entry["phase"])
        and bool(suspects)
        # A method's name has its class before it.
        and suspects[0]["function"].rpartition(".")[2] == entry["function"]
        and regression["recovered_by"] == entry.get("repaired_by")
        and (CAUSE not in entry or regression[CAUSE] == entry[CAUSE])
    )


def score_toggle(entry: Entry, result: Entry) -> dict[str, Any]:
    """An optimization that was switched off: one proved regression, whose phase is the optimization's own."""
    found = regressions_at(entry["commit"], result)
    right = len(found) == 1 and found[0]["state"] == CONFIRMED
    right = right and is_same_branch(found[0]["phase"], entry["phase"])
    person = f"{entry['phase']}: {entry['claim']}"
    return score_row(entry["commit"], entry["event"], person, join_words(found), right=right)


def is_same_branch(phase: str, expected: str) -> bool:
    """Whether it is that phase, or one nested in it, or the one around it."""
    return f"{phase}/".startswith(f"{expected}/") or f"{expected}/".startswith(f"{phase}/")


def score_other(regression: Entry, switched: Entry | None) -> dict[str, Any]:
    """Blamed where nothing got slower. What is switched on again may cost something else, such as memory."""
    commit, found_text = culprit_of(regression), describe_found(regression)
    if switched is None:
        return score_row(commit, "nothing changed", "nothing", found_text, right=False)
    event = f"{switched['event'].removesuffix(' off')} on again"
    right = regression["state"] == CONFIRMED and regression["metric"] not in TIME_METRICS
    return score_row(commit, event, "no slower; what else it costs", found_text, right=right)


def score_improvement(entry: Entry, result: Entry) -> dict[str, Any]:
    blamed = regressions_at(entry["commit"], result)
    better = [found for found in result["improvements"] if found["commit"] == entry["commit"]]
    person = f"{entry['metric']} {entry['percent']:+.0f}%, {entry['phase']}; nobody is notified"
    found_text = join_words([*blamed, *better])
    return score_row(entry["commit"], "improvement", person, found_text, right=bool(better) and not blamed)


def score_broken(entry: Entry, result: Entry) -> dict[str, Any]:
    blamed = regressions_at(entry["commit"], result)
    tried = [run for run in result["runs"] if run["commit"] == entry["commit"]]
    found_text = join_words(blamed, "not blamed")
    if tried:
        found_text += f"; its run {tried[0]['state']}"
    right = not blamed and all(run["state"] == "failed" for run in tried)
    return score_row(entry["commit"], entry["event"], "left out, not blamed", found_text, right=right)


def score_definition(entry: Entry, result: Entry) -> dict[str, Any]:
    """The commit lies in no regression's range, and what is measured from it on is another case."""
    position = {commit: number for number, commit in enumerate(result["commits"])}
    at = position[entry["commit"]]
    around = [
        regression
        for regression in result["regressions"]
        if position[regression["last_good"]] < at <= position[regression["first_bad"]]
    ]
    done = [run for run in result["runs"] if run["state"] == "done"]
    before = {run["case"] for run in done if position[run["commit"]] < at}
    after = {run["case"] for run in done if position[run["commit"]] >= at}
    found_text = join_words(around, "no regression")
    found_text += f"; {', '.join(sorted(after - before))} is new" if after - before else ""
    right = not around and bool(after) and not before & after
    return score_row(entry["commit"], entry["event"], "a new series, no regression", found_text, right=right)


SCORERS = {
    "regression": score_regression,
    "toggle": score_toggle,
    "improvement": score_improvement,
    "broken": score_broken,
    "definition": score_definition,
}


def score_grouping(result: Entry) -> dict[str, float] | None:
    """How near to one regression for each cause, and one cause in each regression; None without a cause.

    A regression has a cause where it names its commit, or leaves it in its range. A cause that was missed
    counts as none.
    """
    position = {commit: number for number, commit in enumerate(result["commits"])}
    causes = [entry["commit"] for entry in result["planted"] if entry["kind"] in CAUSES]
    if not causes:
        return None
    counts = [
        sum(has_cause(regression, cause, position) for cause in causes)
        for regression in result["regressions"]
    ]
    total, regressions = sum(counts), sum(map(bool, counts))
    return {
        "regressions_per_cause": round(total / len(causes), 2),
        "causes_per_regression": round(total / regressions, 2) if regressions else 0.0,
    }


def has_cause(regression: Entry, cause: str, position: Mapping[str, int]) -> bool:
    if regression["culprit"]:
        return bool(regression["culprit"] == cause)
    return position[regression["last_good"]] < position[cause] <= position[regression["first_bad"]]


def format_scores(result: Entry) -> list[str]:
    """The scores for people."""
    rows = [("commit", "planted", "a person", "Paceline", "")]
    rows += [
        (
            row["commit"][:10],
            row["event"],
            row["person"],
            row["paceline"],
            "right" if row["right"] else "WRONG",
        )
        for row in score_planted(result)
    ]
    lines = align_columns(rows)
    if grouping := score_grouping(result):
        lines.append("; ".join(f"{name.replace('_', ' ')}: {value:.2f}" for name, value in grouping.items()))
    return lines
