"""A comparison as Markdown, for a pull request or a chat, and as CSV, for a table or a script."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.http import HttpResponse

from dashboard.comparisons.comparing import CaseComparison, Comparison
from dashboard.comparisons.metric_rows import MetricRow
from dashboard.comparisons.pairing import PooledRuns
from dashboard.comparisons.profile_rows import ProfileRow
from dashboard.comparisons.revisions import ComparisonSide
from dashboard.pages.csv_cells import safe_cell
from dashboard.sentences.comparisons import comparisons as sentences
from dashboard.sentences.formatting import numbers
from dashboard.sentences.formatting.english import upper_first
from dashboard.sentences.formatting.markdown import code_span, escape_markdown

# (comparison, its address) to a file.
FileResponse = Callable[[Comparison, str], HttpResponse]

COLUMNS = (
    *(
        "part",
        "case",
        "name",
        "where",
        "unit",
        "better",
        "base",
        "head",
        "ratio",
        "difference",
        "low",
        "high",
    ),
    *("verdict", "reason"),
)
# A comment of a forge is bounded: the page behind its link has all.
MOST_METRICS, MOST_ROWS = 40, 15

Cells = dict[str, Any]


def write_csv(comparison: Comparison, address: str) -> HttpResponse:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for cells in csv_rows(comparison, address):
        writer.writerow({name: safe_cell(value) for name, value in cells.items()})
    return _attach_file(comparison, text.getvalue(), "text/csv", "csv")


def _attach_file(comparison: Comparison, text: str, kind: str, ending: str) -> HttpResponse:
    names = (comparison.project.slug, comparison.base.name, comparison.head.name)
    name = "-".join(part.replace(":", "-") for part in names)
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}.{ending}"'
    return response


def csv_rows(comparison: Comparison, address: str) -> Iterator[Cells]:
    """One shape for all parts: of a metric, function or phase its values, of others texts at both sides."""
    base, head = comparison.base, comparison.head
    yield {"part": "address", "name": address}
    yield {"part": "commit", "base": base.commit.hash, "head": head.commit.hash}
    for summary in comparison.cases:
        name = str(summary.pair.base.configuration)
        yield {"part": "case", "case": name, "reason": sentences.summary_text(summary.rows)}
    for row in comparison.pairing.unpaired:
        yield {"part": "not compared", "case": str(row.configuration), "reason": sentences.obstacle_text(row)}
    if comparison.chosen:
        case = str(comparison.chosen.pair.base.configuration.case)
        for cells in _chosen_rows(comparison.chosen):
            yield {"case": case, **cells}


def _chosen_rows(compared: CaseComparison) -> Iterator[Cells]:
    base, head = compared.pair.base, compared.pair.head
    yield {"part": "runs", "base": _run_numbers(base), "head": _run_numbers(head)}
    for label, before, after in (*compared.environment, *compared.windows):
        yield {"part": "environment", "name": label, "base": before, "head": after}
    for row in compared.rows:
        yield _metric_cells(row)
    for phase in compared.phases:
        values = {"base": phase.base, "head": phase.head, "difference": phase.difference}
        yield {"part": "phase", "name": phase.path, "unit": "s/step", "better": "lower", **values}
    profile = compared.profile
    for part, rows in (
        ("function", profile.functions),
        ("operation", profile.operations),
        ("kernel", profile.kernels),
    ):
        for found in rows:
            yield from _profile_cells(part, found)


def _run_numbers(side: PooledRuns) -> str:
    return " ".join(str(run.pk) for run in side.runs)


def _metric_cells(row: MetricRow) -> Cells:
    return {
        "part": "metric", "name": row.metric.name, "where": row.phase, "unit": row.metric.unit,
        "better": row.metric.better, "base": row.base, "head": row.head, "ratio": row.ratio,
        "difference": row.difference, "low": row.low, "high": row.high, "verdict": row.verdict,
        "reason": row.direction or sentences.reason_text(row),
    }  # fmt: skip


def _profile_cells(part: str, row: ProfileRow) -> Iterator[Cells]:
    common = {"part": part, "name": row.name, "where": row.where, "verdict": row.what}
    calls = {"base": row.calls_base, "head": row.calls_head, "difference": row.calls_difference}
    own = {"base": row.own_base, "head": row.own_head, "difference": row.own_difference}
    yield {**common, "unit": "calls/step", **calls}
    if row.has_times:
        yield {**common, "unit": "s/step", **own}


def write_markdown(comparison: Comparison, address: str) -> HttpResponse:
    text = "\n".join(markdown_lines(comparison, address)) + "\n"
    return _attach_file(comparison, text, "text/markdown", "md")


def markdown_lines(comparison: Comparison, address: str) -> Iterator[str]:
    base, head = comparison.base, comparison.head
    names = (code_span(head.name), code_span(base.name), escape_markdown(comparison.project.slug))
    yield "### {} against {} of {}".format(*names)
    yield ""
    for name, side in (("Base", base), ("Head", head)):
        yield f"- {name}: {_markdown_side(side)}"
    compared = comparison.chosen
    if compared:
        pair = compared.pair
        yield f"- Case: {code_span(str(pair.base.configuration))}" + (
            f" against {code_span(str(pair.head.configuration))}" if pair.has_two_cases else ""
        )
        yield f"- Base: {escape_markdown(sentences.pooled_sentence(pair.base))}"
        yield f"- Head: {escape_markdown(sentences.pooled_sentence(pair.head))}"
    yield f"- [All of it]({address})"
    yield ""
    if compared is None:
        yield escape_markdown(sentences.nothing_sentence(comparison))
        return
    yield f"**{escape_markdown(sentences.lead_sentence(compared))}**"
    yield ""
    for warning in sentences.comparability_sentences(comparison):
        yield f"> {escape_markdown(warning)}"
        yield ""
    yield from _markdown_parts(comparison, compared)


def _markdown_side(side: ComparisonSide) -> str:
    words = sentences.side_words(side)
    named = f"{escape_markdown(words)}, " if words else ""
    return f"{named}{code_span(side.commit.short)} {escape_markdown(side.commit.subject)}"


def _markdown_parts(comparison: Comparison, compared: CaseComparison) -> Iterator[str]:
    others = [summary for summary in comparison.cases if summary.pair is not compared.pair]
    yield from _markdown_table(
        ("Metric", "Base", "Head", "Head against base", ""),
        (_markdown_metric(row) for row in compared.different[:MOST_METRICS]),
        more=len(compared.different) - MOST_METRICS,
    )
    yield from _markdown_table(
        ("Other case", "Headline metrics"),
        (
            (
                code_span(str(summary.pair.base.configuration)),
                escape_markdown(sentences.summary_text(summary.rows)),
            )
            for summary in others[:MOST_ROWS]
        ),
        more=len(others) - MOST_ROWS,
    )
    yield from _markdown_table(
        ("Phase, own time per step", "Base", "Head", "Difference"),
        (
            (
                code_span(row.path),
                numbers.format_quantity(row.base, "s"),
                numbers.format_quantity(row.head, "s"),
                numbers.format_signed_quantity(row.difference, "s"),
            )
            for row in compared.phases[:MOST_ROWS]
        ),
        more=len(compared.phases) - MOST_ROWS,
    )
    profile = compared.profile
    for title, rows in (
        ("Function", profile.functions),
        ("Operation", profile.operations),
        ("Kernel", profile.kernels),
    ):
        yield from _markdown_table(
            (title, "", "Calls per step", "Own time per step"),
            (_markdown_profile(row) for row in rows[:MOST_ROWS]),
            more=len(rows) - MOST_ROWS,
        )
    yield from _markdown_table(
        ("Environment", "Base", "Head"),
        (
            tuple(escape_markdown(text) for text in difference)
            for difference in compared.environment[:MOST_METRICS]
        ),
        more=len(compared.environment) - MOST_METRICS,
    )


def _markdown_metric(row: MetricRow) -> Sequence[str]:
    unit = row.metric.unit
    levels = (numbers.format_quantity(row.base, unit), numbers.format_quantity(row.head, unit))
    label = escape_markdown(sentences.metric_row_label(row))
    return label, *levels, sentences.effect_text(row), row.direction


def _markdown_profile(row: ProfileRow) -> Sequence[str]:
    calls = f"{numbers.format_number(row.calls_base)} → {numbers.format_number(row.calls_head)}"
    times = (numbers.format_quantity(own, "s") for own in (row.own_base, row.own_head))
    own = " → ".join(times) if row.has_times else numbers.DASH
    return code_span(f"{row.name} {row.where}"), sentences.what_label(row.what), calls, own


def _table_cell(text: str) -> str:
    """A pipe would end the cell, even within a code span."""
    return text.replace("|", "\\|") if text.startswith("`") else text


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, more: int) -> Iterator[str]:
    """A table with a line on what it leaves out; nothing without rows."""
    lines = [f"| {' | '.join(map(_table_cell, row))} |" for row in rows]
    if not lines:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---' for _ in head)}|"
    yield from lines
    yield ""
    if more > 0:
        yield f"{upper_first(numbers.format_number(more))} more."
        yield ""
