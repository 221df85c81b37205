"""`python -m workers.host run`: make this machine a host of a Paceline site."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from workers.host.agent import JoinOptions, run_agent
from workers.host.configuration import ConfigurationError, check_site_address, configure_logging


def main() -> int:
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
    options = parser.parse_args()
    try:
        configure_logging(os.environ)
        site = check_site_address(options.site) if options.site else ""
        ended = run_agent(options.home.absolute(), JoinOptions(site, options.code, options.name))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{ended}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
