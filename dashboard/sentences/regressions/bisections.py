"""What bisection says beside the commit: of merges, of commits that can't be told apart, of what came
gradually."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.models import Experiment, Regression
from dashboard.sentences.formatting import numbers

GRADUALLY = "little by little or in parts"


def bisection_sentence(regression: Regression) -> str:
    """Empty where there is nothing to say beside the commit."""
    found = regression.bisection
    if not found:
        return ""
    if found["code"] == "range":
        sentence = f"It is one of these {found['commits']} commits{inconclusive_words(found)}."
        return f"{sentence}{only_changed_words(regression)}"
    if found["code"] == "gradual":
        return f"It came over these {found['commits']} commits, {GRADUALLY}: no commit has all of it."
    if found["code"] == "answered":
        return repeated_sentence(regression, found)
    return merge_sentence(found)


def repeated_sentence(regression: Regression, found: Mapping[str, Any]) -> str:
    """Why a proof has ended without an answer of its own."""
    often = f"have answered {found['times']} times, for causes close to each other, and aren't measured again"
    if regression.state == Regression.State.CONFIRMED and found["commits"] == 1:
        return f"This commit isn't examined further: the pairs that would tell more {often}."
    if regression.state == Regression.State.CONFIRMED:
        return f"It is one of these {found['commits']} commits: the pairs that would tell them apart {often}."
    commits = "this commit has" if found["commits"] == 1 else f"these {found['commits']} commits have"
    # Its range may have moved since, where nothing may be asked.
    return f"Whether {commits} it isn't known: the pairs of its proof {often}."


def only_changed_words(regression: Regression) -> str:
    """` Of them only abc1234567 changes Replay.push.`"""
    known = regression.only_changed_by and regression.suspects and regression.explains_own_commits
    if not known:
        return ""
    return f" Of them only {regression.only_changed_by[:10]} changes {regression.suspects[0]['function']}."


def merge_sentence(found: Mapping[str, Any]) -> str:
    merge = str(found.get("merge", ""))[:10]
    match found["code"]:
        case "octopus":
            return f"{merge} merges {found['branches']} branches at once: it stays named as a whole."
        case "unreadable merge":
            return f"{merge} is a merge; its branch can't be looked into: {found['trouble']}"
        case "unrelated merge":
            return f"{merge} merges an unrelated history: it stays named as a whole."
        case "empty merge":
            return f"{merge} is a merge that brought no commit: it is itself to blame."
        case "merge itself":
            return (
                f"The merge {merge} itself is to blame: its branch up to {found['tip'][:10]} doesn't have it "
                f"against their merge base {found['base'][:10]}."
            )
        case "branch can't tell":
            untestable = found["verdict"] == Experiment.Verdict.UNTESTABLE
            why = "don't both run" if untestable else "couldn't be told apart"
            return (
                f"{merge} is a merge. Whether its branch brought it isn't known: the branch's newest commit "
                f"{found['tip'][:10]} and their merge base {found['base'][:10]} {why}."
            )
        case "branch can't be measured":
            return f"It came by the merge {merge}, whose commits can't be measured."
        case "one of branch":
            names = ", ".join(sha[:10] for sha in found["suspects"])
            more = found["count"] - len(found["suspects"])
            names += f" and {more} more" if more > 0 else ""
            return f"{came_by(merge, found)}: it is one of {names}{inconclusive_words(found)}."
        case "came by merge":
            first = f"{came_by(merge, found)}: {found['commit'][:10]} is the first of them to have it."
            return first + PARTS.get(found["part"], "")
    return str(found.get("text", ""))


PARTS = {
    "merge has the rest": " The branch brings a part of it, the merge itself the rest.",
    "branch has the rest": " It has a part of it; a later commit of the branch has the rest.",
}


def came_by(merge: str, found: Mapping[str, Any]) -> str:
    brought = "one commit" if found["brought"] == 1 else f"{numbers.format_number(found['brought'])} commits"
    return f"It came by the merge {merge}, which brought {brought}"


def inconclusive_words(found: Mapping[str, Any]) -> str:
    """`; 2 don't run, 1 can't tell`: why no more is known."""
    broken, undecided = found.get("untestable", 0), found.get("undecided", 0)
    parts = [f"{broken} {'does' if broken == 1 else 'do'}n't run"] if broken else []
    parts += [f"{undecided} can't tell"] if undecided else []
    return f"; {', '.join(parts)}" if parts else ""
