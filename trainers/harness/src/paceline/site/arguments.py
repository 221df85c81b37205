"""What every command that asks a site is given."""

from __future__ import annotations

import argparse
from pathlib import Path

from .client import SITE_VARIABLE, TOKEN_VARIABLE


def add_site_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", metavar="URL", help=f"of Paceline (default: ${SITE_VARIABLE})")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"with a token of the project (default: the token in ${TOKEN_VARIABLE})",
    )
