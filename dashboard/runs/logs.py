"""Untrusted text from a run, made fit for the database and kept at a bounded size."""

from __future__ import annotations

from dashboard.models import Run, RunLog

# Of a long log the beginning says how it was started and the end why it stopped.
HEAD = 64 * 1024
TAIL = 192 * 1024
CUT = "\n[... {} characters are left out here ...]\n"


def clean_text(text: str | bytes) -> str:
    """Valid Unicode without NUL, which PostgreSQL can't store."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return data.decode("utf-8", "replace").replace("\x00", "�")


def one_line(text: str | bytes, limit: int) -> str:
    """`text` as one line of at most `limit` characters."""
    words = " ".join(clean_text(text).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def append_log(run_id: int, text: str | bytes) -> None:
    """Add to the run's log. The caller has the run's row locked: two appends can't overwrite each other."""
    if not text:
        return
    kept = RunLog.objects.get_or_create(run_id=run_id)[0]
    kept.text = bound_log(kept.text + clean_text(text))
    kept.save(update_fields=["text"])


def announce_attempt(run: Run) -> None:
    """Begin a later attempt's part of the log, which keeps what the earlier ones printed."""
    if run.attempt > 1:
        append_log(run.pk, f"\n--- attempt {run.attempt} on {run.machine} ---\n")


def bound_log(text: str) -> str:
    """The head and the tail of a text that is too long, with a line that says how much is missing."""
    if len(text) <= HEAD + TAIL:
        return text
    head, rest = text[:HEAD], text[HEAD:]
    missing = len(rest) - TAIL
    # An earlier cut stands at the head's end: its count is carried on.
    marker, _, after = rest.partition(" characters are left out here ...]\n")
    before = marker.removeprefix("\n[... ")
    if after and before.isdigit():
        missing = int(before) + len(after) - TAIL
        rest = after
    return head + CUT.format(missing) + rest[-TAIL:]
