"""What a check says: on its page, in the status and the comment of its pull request, in a terminal."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings

from dashboard.experiments.bounds import OPEN, WORSE, BoundedDifference
from dashboard.models import Check
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import join_names, lower_first, upper_first
from dashboard.sentences.formatting.markdown import code_span, escape_markdown
from dashboard.sentences.formatting.metric_labels import metric_label
from dashboard.sentences.regressions.regressions import describe_function_change
from dashboard.sentences.regressions.suspects import function_location

if TYPE_CHECKING:
    from dashboard.pull_requests.report import Cause, CheckReport, CheckRow

Answer = Check.Answer
State = Check.State

LONGEST_STATUS = 140
# The line of a comment that calls what is worse intended.
INTENDED_COMMAND = "/paceline intended"
# A comment shows so many rows; the page has all.
MOST_ROWS = 5
MOST_CAUSES = 3
NO_DIFFERENCE = "~"


def change_text(bounded: BoundedDifference) -> str:
    """`+38 % [35, 41]`: how the head differs from the base; empty while too few pairs tell."""
    if bounded.low is None or bounded.high is None:
        return ""
    ends = [bounded.metric.worse * end for end in (bounded.low, bounded.high)]
    middle = bounded.metric.worse * bounded.middle
    if bounded.logarithmic:
        low, high = sorted(math.exp(end) for end in ends)
        change = numbers.format_percent_change(math.exp(middle))
        interval = numbers.format_percent_interval(low, high)
        return change if low == high else f"{change} {interval}"
    unit = bounded.metric.unit
    low, high = sorted(ends)
    change = numbers.format_signed_quantity(middle, unit)
    return change if low == high else f"{change} {numbers.format_interval(low, high, unit)}"


def verdict_text(bounded: BoundedDifference) -> str:
    """`worse`, `better`, `~` where there is no difference that matters, `not known`, or what more bought."""
    if bounded.verdict == WORSE:
        return "worse"
    if bounded.is_offset:
        return "offset by a faster step"
    if bounded.is_better:
        return "better"
    return "not known" if bounded.verdict == OPEN else NO_DIFFERENCE


def most_worse(bounded: BoundedDifference) -> str:
    """`2.1 %`: by how much the head may at most be worse."""
    high = max(bounded.high or 0.0, 0.0)
    if bounded.logarithmic:
        return numbers.format_percent(100 * math.expm1(high))
    return numbers.format_quantity(high, bounded.metric.unit)


def reason_sentence(reason: Mapping[str, Any]) -> str:
    """Why it isn't known, or why it ended; empty without a reason."""
    match reason.get("code"):
        case "nothing touched":
            return "No benchmark runs what it changes."
        case "already merged":
            return f"It is on {reason['onto']} already: there is nothing to compare."
        case "no common case":
            return "Head and merge base have no case in common."
        case "no merge base":
            return f"It has no history in common with {reason['onto']}."
        case "head is gone":
            return f"Its head {reason['head'][:10]} can't be found in the repository any more."
        case "base is gone":
            return f"{reason['commit'][:10]}, which was the tip of {reason['onto']}, isn't in the repository."
        case "can't be measured":
            return str(reason["text"])
        case "side failed":
            return f"{reason['case']} can't be measured: {reason['text']}"
        case "control moved":
            moved = reason.get("ratio")
            by = f" by {numbers.format_percent(100 * (moved - 1))}" if moved else ""
            return f"The merge base differed from itself{by}: this machine can't tell now."
        case "both answers possible":
            seen = reason.get("visible")
            if seen is None:
                return "Too few undisturbed pairs could be measured to tell anything."
            return f"Its minutes are spent; {numbers.format_percent(100 * seen)} would have been seen."
        case "newer head":
            return "The pull request has a newer head."
        case "pull request closed":
            return "The pull request was closed."
        case "cancelled":
            return f"Cancelled by {reason['person']}."
    return ""


def answer_headline(report: CheckReport) -> str:
    """The answer in one sentence."""
    check = report.check
    if check.state == State.WAITING:
        return "Waiting for an approval: the code comes from a fork."
    if check.state == State.REQUESTED:
        return "Waiting to be prepared."
    if check.state == State.CANCELLED:
        return reason_sentence(check.reason) or "Cancelled."
    if is_unanswered(check) and not report.pairs and not report.machines:
        return "Waiting for a machine: none has taken it yet."
    if is_unanswered(check):
        return f"Being measured: {numbers.format_count(report.pairs, 'pair')} so far."
    match check.answer:
        case Answer.WORSE:
            worst = report.worst
            metric = lower_first(metric_label(worst.bounded.metric.name))
            # Beside being faster it may learn worse: then that is what counts.
            what = (
                "Learns worse" if report.learns_worse and worst.bounded.metric.kind == "quality" else "Worse"
            )
            said = [f"{what}: {metric} {change_text(worst.bounded)} in {worst.case}.", left_text(report)]
            said += [f"Intended, says {check.intended_by}."] if check.intended_by else []
            return " ".join(filter(None, said))
        case Answer.NOT_WORSE:
            if not report.rows:
                return reason_sentence(check.reason)
            bound = max((row.bounded for row in report.rows if is_judged(row.bounded)), key=upper_end)
            better = (
                " Faster." if any(is_judged(r.bounded) and r.bounded.is_better for r in report.rows) else ""
            )
            if upper_end(bound) <= 0:
                return f"Not slower.{better}"
            return f"Not slower: by no more than {most_worse(bound)}.{better}"
    return f"Not known. {reason_sentence(check.reason)}".strip()


def is_unanswered(check: Check) -> bool:
    """Being measured, with nothing proved yet."""
    return check.state == State.MEASURING and not check.answer


def left_text(report: CheckReport) -> str:
    """What isn't known yet of a check that is worse already, or was cancelled then; empty where all is."""
    if report.check.state != State.MEASURING:
        return "The rest was cancelled." if report.cancelled else ""
    if list(report.left) == [report.worst.case]:
        what = upper_first(metric_label(report.left[report.worst.case]))
    elif report.left:
        what = ", ".join(report.left) if len(report.left) < 3 else f"{len(report.left)} cases"
    else:
        what = "The merge base against itself"
    return f"{what} {'is' if len(report.left) < 2 else 'are'} still being measured."


def is_judged(bounded: BoundedDifference) -> bool:
    return bounded.metric.kind == "time"


def upper_end(bounded: BoundedDifference) -> float:
    return bounded.high if bounded.high is not None else math.inf


def commits_text(check: Check) -> str:
    """`abc1234567 against its merge base with main, def8901234`."""
    base = f", {check.base_commit.short}" if check.base_commit else ""
    return f"{check.head_hash[:10]} against its merge base with {check.onto}{base}"


def cause_sentences(report: CheckReport) -> list[str]:
    """The first MOST_CAUSES of it; where it has several cases each with those that it is said of."""
    cases: dict[str, dict[str, None]] = {}
    for cause in report.causes:
        cases.setdefault(cause_text(cause), {})[cause.case] = None
    several = len({row.case for row in report.rows}) > 1
    said = [f"{text}, in {join_names([*named])}" if several else text for text, named in cases.items()]
    return said[:MOST_CAUSES]


def cause_text(cause: Cause) -> str:
    """`learn explains 92 %`, `train.py:push: 256 calls a step instead of 1`.

    Of a suspect `Peak memory: train.py:push was changed`.
    """
    if cause.suspect:
        metric = metric_label(cause.metric)
        return f"{upper_first(metric)}: {suspect_text(cause.suspect)}"
    if not cause.function:
        return f"{cause.phase} explains {numbers.format_share(cause.share)} of it"
    where = function_location({"file": cause.file, "function": cause.function})
    before, after = map(numbers.format_number, cause.calls)
    return f"{where}: {after} calls a step instead of {before}"


def suspect_text(suspect: Mapping[str, Any]) -> str:
    """`train.py:push is called 256 times per step instead of 1 and was changed`."""
    parts = [describe_function_change(suspect, ""), "was changed" if suspect["changed"] else ""]
    return f"{function_location(dict(suspect))} {' and '.join(filter(None, parts))}"


def next_step(check: Check, page: str = "here") -> str:
    """What a reader may do now; `page` is how its page is called where this is read."""
    if check.state == State.WAITING:
        return (
            f"Somebody who may run code here approves this very head: {page}, or by a comment "
            f"that says {approval_command(check)}"
        )
    if check.answer == Answer.WORSE and check.state == State.MEASURING:
        return "Repair it. Once the rest is measured, or cancelled, it can be called intended."
    if check.answer == Answer.WORSE and not check.intended_by:
        told = "Repair it, or say that it is intended"
        commented = f": {page}, or by a comment that says {INTENDED_COMMAND}"
        return f"{told}{commented}" if check.pull_request else f"{told}."
    if check.answer == Answer.NOT_KNOWN:
        code = check.reason.get("code")
        if code in ("can't be measured", "side failed"):
            return "Mend that and check the new head; where no code is to blame, run this one again."
        if code == "no common case":
            return "A case is compared where both commits have it, with the same parameters and version."
        if code == "base is gone":
            return f"Run it again: it is compared with {check.onto} as it is then."
        # These stay as they are, however long it is measured.
        if code not in ("no merge base", "head is gone"):
            return "Run it again, with more minutes or on a quieter machine."
    return ""


def approval_command(check: Check) -> str:
    """The line of a comment that lets the head of a fork run."""
    return f"/paceline approve {check.head_hash}"


def status_state(check: Check) -> str:
    """pending, success, failure or neutral, as forges call them. What isn't known is never a failure."""
    if check.state in (State.REQUESTED, State.WAITING) or is_unanswered(check):
        return "pending"
    if check.state == State.CANCELLED or check.answer == Answer.NOT_KNOWN:
        return "neutral"
    return "failure" if check.answer == Answer.WORSE and not check.intended_by else "success"


def published_headline(report: CheckReport) -> str:
    """As it is published at a forge, which isn't done for each pair: progress stands on the check's page."""
    if is_unanswered(report.check):
        return "Prepared: measured as machines are free."
    return answer_headline(report)


def status_description(report: CheckReport) -> str:
    text = published_headline(report)
    return text if len(text) <= LONGEST_STATUS else f"{text[: LONGEST_STATUS - 1]}…"


def check_address(check: Check) -> str:
    return f"{settings.PACELINE_URL}{check.get_absolute_url()}"


def comment_marker(check: Check) -> str:
    """By which the comment is found again: unseen in it."""
    return f"<!-- paceline {settings.PACELINE_URL} {check.project.slug} -->"


def comment_markdown(report: CheckReport) -> str:
    """The one comment of a pull request: at most fifteen visible lines."""
    check = report.check
    lines = [comment_marker(check), f"**Paceline · {escape_markdown(published_headline(report))}**", ""]
    lines += [f"{escape_markdown(commits_text(check))}{measured_text(report)}", ""]
    shown = report.differing[:MOST_ROWS]
    if shown:
        lines += ["| case | metric | difference | |", "|---|---|---|---|", *map(_table_row, shown), ""]
    folded = [*report.differing[MOST_ROWS:], *report.same]
    if folded:
        lines += [f"<details><summary>{folded_text(folded)}</summary>", ""]
        lines += ["| case | metric | difference | |", "|---|---|---|---|", *map(_table_row, folded[:30]), ""]
        lines += [escape_markdown(unmoved), ""] if (unmoved := unmoved_text(report)) else []
        lines += ["</details>", ""]
    if check.answer:
        told = [*cause_sentences(report), *uncertain_counter_sentences(report)]
        lines += [*(f"- {escape_markdown(sentence)}" for sentence in told), ""] if told else []
    if step := next_step(check, "on the check's page"):
        # As code it is copied as it is, a forge shows the whole hash, and this comment isn't taken for one.
        commands = (approval_command(check), INTENDED_COMMAND)
        command = next((command for command in commands if step.endswith(command)), "")
        text = escape_markdown(step.removesuffix(command))
        lines += [f"{text} {code_span(command)}" if command else text, ""]
    address = check_address(check)
    links = f"[The whole check]({address}) · [run it again]({address}#again)"
    repeat = f" · repeat it: {code_span(repeat_command(check))}" if check.base_commit_id else ""
    return "\n".join([*lines, links + repeat, ""])


def _table_row(row: Any) -> str:
    bounded = row.bounded
    cells = (
        escape_markdown(row.case),
        escape_markdown(metric_label(bounded.metric.name)),
        change_text(bounded) or "too few pairs",
        verdict_text(bounded),
    )
    return f"| {' | '.join(cells)} |"


def folded_text(rows: Sequence[CheckRow]) -> str:
    """`3 more rows not worse, 1 not known`."""
    verdicts = [verdict_text(row.bounded) for row in rows]
    same, unknown = verdicts.count(NO_DIFFERENCE), verdicts.count("not known")
    counts = {
        "with a difference": len(rows) - same - unknown,
        "not worse": same,
        "not known": unknown,
    }
    first, *others = [(count, words) for words, count in counts.items() if count]
    more = f"{numbers.format_count(first[0], 'more row')} {first[1]}"
    return ", ".join([more, *(f"{count} {words}" for count, words in others)])


def measured_text(report: CheckReport) -> str:
    """`: 24 pairs on gpu-1, the base against itself ~`."""
    if not report.pairs:
        return "."
    pairs = numbers.format_count(report.pairs, "pair")
    where = f" on {escape_markdown(', '.join(report.machines))}" if report.machines else ""
    control = f"; the merge base against itself: {change_text(report.control)}" if report.control else ""
    so_far = " so far" if report.check.state == State.MEASURING else ""
    return f": {pairs}{so_far}{where}{control.rstrip(': ') if control else ''}."


def control_text(report: CheckReport) -> str:
    """By how much the base differs from itself, or that too few pairs tell; empty while none is measured."""
    if change := change_text(report.control) if report.control else "":
        return change
    if not report.control_pairs:
        return ""
    return "too few undisturbed pairs" if report.check.ended_at else "too few pairs yet"


def unmoved_text(report: CheckReport) -> str:
    """`As often on both sides: function calls, graph breaks.` Empty where no counter is."""
    names = [lower_first(metric_label(name)) for name in report.unmoved_counters]
    return f"As often on both sides: {', '.join(names)}." if names else ""


def repeat_command(check: Check) -> str:
    """With all that was asked for otherwise than the project has it."""
    words = ["manage.py", "check_commit", check.project.slug, check.head_hash[:10], "--onto", check.onto]
    for benchmark in check.benchmarks:
        words += ["--benchmark", benchmark]
    if check.minutes != check.project.check_minutes:
        words += ["--minutes", numbers.format_field(check.minutes)]
    if check.quick is not None:
        words.append("--quick" if check.quick else "--no-quick")
    return shlex.join([*words, "--wait"])


def comment_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


LEFT_OUT = {
    "not touched": "runs nothing that it changes",
    "no time": "there are no minutes left for it",
    "new": "the merge base doesn't have it",
    "gone": "the head doesn't have it",
    "another version": "the merge base has another version of it",
}


def left_out_sentences(report: CheckReport) -> list[str]:
    """`cs2_vision isn't measured: runs nothing that it changes.` And of counters that may differ why no row
    says so."""
    lines = [f"{item['case']} isn't measured: {LEFT_OUT[item['code']]}." for item in report.check.left_out]
    return lines + uncertain_counter_sentences(report)


def uncertain_counter_sentences(report: CheckReport) -> list[str]:
    lines = []
    for case, counters in report.uncertain_counters.items():
        names = ", ".join(lower_first(metric_label(name)) for name in counters)
        lines.append(
            f"{case} seems to differ in {names}, which can't be proved: the minutes of this check weren't "
            "enough to count often enough."
        )
    return lines


def row_values(row: CheckRow) -> dict[str, Any]:
    """A row as scripts read it: ratio and its interval, or differences where values have no ratio."""
    bounded = row.bounded
    worse = bounded.metric.worse
    ends = [bounded.middle, bounded.low, bounded.high]
    signed = [None if end is None else worse * end for end in ends]
    middle, *sides = signed
    known = [end for end in sides if end is not None]
    low, high = sorted(known) if len(known) == 2 else (None, None)
    spelled = [
        None if end is None else math.exp(end) if bounded.logarithmic else end for end in (middle, low, high)
    ]
    names = ("ratio", "low", "high") if bounded.logarithmic else ("difference", "low", "high")
    return {
        "case": row.case,
        "metric": bounded.metric.name,
        "unit": bounded.metric.unit,
        **dict(zip(names, spelled, strict=True)),
        "pairs": bounded.pairs,
        "by_steps": bounded.by_steps,
        "verdict": verdict_text(bounded),
        "experiment": row.experiment,
    }
