"""How long measuring will take, in words that say what that rests on."""

from __future__ import annotations

from dashboard.project_setup.expected_durations import ExpectedDuration
from dashboard.sentences.formatting.numbers import format_duration


def expected_sentence(expected: ExpectedDuration) -> str:
    """Of one commit, on one machine; empty where nothing is measured."""
    if not expected.known and not expected.unknown:
        return ""
    about, longest = format_duration(expected.seconds), format_duration(expected.longest_seconds)
    if not expected.unknown:
        return f"A commit with all these cases takes about {about} on one machine, as their newest runs did."
    if not expected.known:
        bound = f": {longest} at most on one machine, by the time limits" if expected.longest_seconds else ""
        return f"How long a commit takes is unknown before the first full run{bound}."
    ran = "case that ran before takes" if expected.known == 1 else "cases that ran before take"
    others = "the other one takes" if expected.unknown == 1 else f"the other {expected.unknown} take"
    bound = f", {longest} at most by the time limits" if expected.longest_seconds else ""
    return (
        f"On one machine the {expected.known} {ran} about {about} a commit; how long {others} is unknown "
        f"before the first full run{bound}."
    )


def expected_text(expected: ExpectedDuration, commits: int = 1) -> str:
    """`about 35 min`; where a case never ran `12 h at most` by its time limit, or `more than 35 min` without
    one; empty where neither is known."""
    if not expected.known and not expected.longest_seconds:
        return ""
    takes = format_duration(commits * (expected.seconds + expected.longest_seconds))
    if not expected.unknown:
        return f"about {takes}"
    return f"{takes} at most" if expected.longest_seconds else f"more than {takes}"


def remaining_sentence(expected: ExpectedDuration) -> str:
    """When what was asked for will be done; empty where nothing of it is known."""
    if not expected.known:
        return ""
    text = f"About {format_duration(expected.seconds)} of one machine are left, as their newest runs took"
    return f"{text}; {expected.unknown} more ran never before." if expected.unknown else f"{text}."


def run_end_sentence(
    took: float | None, elapsed: float | None, by_progress: float | None, time_limit: float
) -> str:
    """When a run will have ended, all in seconds: by what the newest run of its case took, else by its own
    progress, else by its time limit.

    `elapsed`: since it was claimed; `by_progress`: what is left by that; None where nothing tells.
    """
    left = f"About {format_duration(by_progress)} are left by its progress" if by_progress is not None else ""
    if took is None:
        most = f"it is measured for {format_duration(time_limit)} at most, its environment comes on top"
        return f"{left}." if left else f"No run of its case was measured yet: {most}."
    newest = f"its case's newest run took {format_duration(took)}"
    if elapsed is None:
        return f"Once it has begun it will take about as long as before: {newest}."
    if took > elapsed:
        return f"About {format_duration(took - elapsed)} are left: {newest}."
    return f"It takes long: {newest}.{f' {left}.' if left else ''}"
