"""`python -m workers.host run`: make this machine a host of a Paceline site."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from workers.host.agent import JoinOptions, run_agent
from workers.host.configuration import (
    ConfigurationError,
    check_site_address,
    configure_logging,
    read_identity,
)
from workers.host.processes import reaper
from workers.host.slots import MOST_SLOTS, PARENT, Slot, plan_slots


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.host", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="join the site where that wasn't done yet, and measure for it")
    run.add_argument("--site", default=os.environ.get("PACELINE_SITE", ""), help="like https://host:8000")
    run.add_argument(
        "--code",
        default=os.environ.get("PACELINE_JOIN_CODE", ""),
        help="from the site's page Machines: lets this host join, once, within 15 minutes",
    )
    run.add_argument(
        "--name",
        default=os.environ.get("PACELINE_MACHINE", "") or socket.gethostname(),
        help="as which the machine is known on the site; its host name where none is given",
    )
    run.add_argument(
        "--home",
        type=Path,
        default=Path(os.environ.get("PACELINE_HOST_HOME", "") or Path.home() / ".paceline-host"),
        help="where its token, checkouts and environments are kept",
    )
    run.add_argument(
        "--slots",
        default=os.environ.get("PACELINE_SLOTS", "auto"),
        help="as how many machines it measures side by side, each on cores of its own: a number, or auto for "
        "one per GPU, pinned to it",
    )
    # Of the agent that is started for each slot.
    for name in ("--slot", "--cores", "--device"):
        run.add_argument(name, default="", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    options = build_parser().parse_args()
    try:
        configure_logging(os.environ)
        site = check_site_address(options.site) if options.site else ""
        joining = JoinOptions(site, options.code, options.name, is_slot=bool(options.slot))
        ended = run_agent(options.home.absolute(), joining, chosen_slots(options))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{ended}\n")
    return 0


def chosen_slots(options: argparse.Namespace) -> list[Slot]:
    if options.slot:
        reaper.die_with_parent(int(os.environ[PARENT]))
        device = int(options.device) if options.device else None
        return [Slot(options.slot, device, tuple(map(int, options.cores.split(","))))]
    if options.slots == "auto":
        # Who has joined as one machine stays one.
        return plan_slots(options.name, None if read_identity(options.home) is None else 1)
    if not options.slots.isdecimal() or not 0 < int(options.slots) <= MOST_SLOTS:
        raise ConfigurationError(f"--slots must be auto or 1 to {MOST_SLOTS}, not {options.slots!r}.")
    return plan_slots(options.name, int(options.slots))


if __name__ == "__main__":
    sys.exit(main())
