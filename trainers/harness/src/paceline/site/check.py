"""The command `check`: whether a commit is slower than its merge base, as a site measures it."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from typing import Any

from ..progress_bar import ProgressBar
from ..units import align_columns
from .arguments import add_site_arguments
from .client import Site, read_site
from .commit_names import name_commit
from .errors import SiteError

POLL_SECONDS = 2.0
MOST_MINUTES = 120.0
ACTIVE = ("requested", "measuring")
# Exit statuses. What isn't known passes, unless --strict.
PASSED, WORSE, UNANSWERED, NOT_KNOWN = 0, 1, 2, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks the site to measure a commit against its merge base with a branch, waits, and prints the "
        f"answer. Exit status: {PASSED} not slower, or not known; {WORSE} proven to be worse, by the "
        f"project's floor or more as measured; {UNANSWERED} no answer; "
        f"with --strict {NOT_KNOWN} where it isn't known."
    )
    parser.add_argument(
        "--base", default="", metavar="BRANCH", help="to be merged into (default: the project's)"
    )
    parser.add_argument("--head", metavar="COMMIT", help="in question (default: what is checked out here)")
    parser.add_argument(
        "--benchmark", action="append", default=[], metavar="NAME", help="check this one; may be repeated"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="measure so long at most")
    parser.add_argument("--quick", action="store_true", help="measure in the manifest's short windows")
    parser.add_argument(
        "--again", action="store_true", help="measure anew, where this head has a check already"
    )
    parser.add_argument("--strict", action="store_true", help=f"end with {NOT_KNOWN} where it isn't known")
    parser.add_argument(
        "--timeout",
        type=float,
        default=MOST_MINUTES,
        metavar="MINUTES",
        help=f"wait so long at most (default: {MOST_MINUTES:g})",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    add_site_arguments(parser)


def check_commit(arguments: argparse.Namespace) -> int:
    """The exit status. Raises SiteError; whatever interrupts it cancels the check that it asked for."""
    site = read_site(arguments.site, arguments.token_file)
    project = site.project()
    head = name_commit(arguments.head)
    known = None if arguments.again else find_check(site, project, head, arguments.base)
    asked = known or request_check(site, project, head, arguments)
    try:
        answered = await_answer(site, asked, arguments.timeout)
    except BaseException:
        if known is None:
            cancel_check(site, asked)
        raise
    print(json.dumps(answered, indent=2) if arguments.json else format_check(answered))
    return exit_status(answered, strict=arguments.strict)


def find_check(site: Site, project: str, head: str, base: str) -> dict[str, Any] | None:
    """The newest check of this head that is under way or answered, such as that of its pull request."""
    if not re.fullmatch(r"[0-9a-f]{40,64}", head):
        return None
    rows: list[dict[str, Any]] = site.send("GET", f"/projects/{project}/checks", {"head": head})["items"]
    return next(
        (row for row in rows if (row["state"] in ACTIVE or row["answer"]) and base in ("", row["onto"])),
        None,
    )


def request_check(site: Site, project: str, head: str, arguments: argparse.Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {"head": head, "onto": arguments.base, "benchmarks": arguments.benchmark}
    if arguments.minutes is not None:
        body["minutes"] = arguments.minutes
    if arguments.quick:
        body["quick"] = True
    try:
        asked: dict[str, Any] = site.send(
            "POST", f"/projects/{project}/checks", body=json.dumps(body).encode(), repeatable=False
        )
    except SiteError as error:
        hint = " Push it first: the site reads the repository." if str(error).startswith("head: ") else ""
        raise SiteError(f"{error}{hint}") from error
    return asked


def await_answer(site: Site, asked: dict[str, Any], minutes: float) -> dict[str, Any]:
    """The check with its answer. Raises SiteError where it takes longer than that."""
    print(f"paceline: {asked['url']}", file=sys.stderr, flush=True)
    until = time.monotonic() + 60 * minutes
    with ProgressBar() as bar:
        while True:
            now: dict[str, Any] = site.send("GET", f"/checks/{asked['id']}")
            bar.show(now["progress"], now["sentence"])
            if now["state"] == "waiting":
                raise SiteError(f"The check waits until somebody lets this head run: {now['url']}")
            if now["state"] not in ACTIVE:
                return now
            if time.monotonic() > until:
                raise SiteError(f"There is no answer within {minutes:g} minutes: {now['url']}")
            time.sleep(POLL_SECONDS)


def cancel_check(site: Site, asked: dict[str, Any]) -> None:
    try:
        site.send("POST", f"/checks/{asked['id']}/cancel", body=b"", repeatable=False)
        print("paceline: the check is cancelled", file=sys.stderr, flush=True)
    except SiteError as error:
        print(f"paceline: the check goes on: {error}", file=sys.stderr, flush=True)


def format_check(check: dict[str, Any]) -> str:
    """The answer, a line for each metric, and what it comes from."""
    base = f" against {check['base'][:10]}, its merge base with {check['onto']}" if check["base"] else ""
    lines = [f"{check['project']}: {check['head'][:10]}{base}", check["sentence"]]
    if check["rows"]:
        moved = {row["metric"] for row in check["rows"] if not is_counted_alike(row)}
        rows = [
            [row["case"], row["metric"], row["change"] or "too few pairs", row["verdict"]]
            for row in check["rows"]
            if row["metric"] in moved
        ]
        lines += ["", align_columns([["case", "metric", "difference", ""], *rows])] if rows else []
        alike = sorted({row["metric"] for row in check["rows"]} - moved)
        lines += [f"As often on both sides: {', '.join(alike)}"] if alike else []
        lines.append("")
    lines += [*check["causes"], *check["left_out"]]
    if check["commands"]:
        lines += ["To repeat it:", *(f"  {command}" for command in check["commands"])]
    return "\n".join([*lines, check["url"]])


def is_counted_alike(row: dict[str, Any]) -> bool:
    """Whether it is an exact counter, which has no pairs, of the same number on both sides."""
    values: dict[str, object] = row["values"]
    return values["pairs"] == 0 and (values.get("ratio") == 1 or values.get("difference") == 0)


def exit_status(check: dict[str, Any], *, strict: bool = False) -> int:
    """What CI gets to see. A check that was cancelled has answered nothing."""
    if check["state"] == "cancelled":
        return UNANSWERED
    if check["status"] == "failure":
        return WORSE
    return NOT_KNOWN if strict and check["answer"] != "not worse" and not check["intended"] else PASSED
