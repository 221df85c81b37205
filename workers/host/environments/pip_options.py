"""How pip reaches packages, as options: a build in a box reads no PIP_ variable and no home of ours."""

from __future__ import annotations

import configparser
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from workers.host.errors import BuildError

# Those of PIP_ that say where packages come from; each of the first takes any number of words.
LISTS = ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "TRUSTED_HOST")
VALUES = ("CERT", "PROXY", "DEFAULT_TIMEOUT", "RETRIES", "CONSTRAINT", "ONLY_BINARY", "NO_BINARY")
FLAGS = ("NO_INDEX", "PREFER_BINARY", "PRE")
# Those that may name files and folders of this machine.
SOURCES = ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "CERT", "CONSTRAINT")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
OFF = ("", "0", "false", "no", "off")
# Of the whole machine; pip reads them also where it ignores variables and homes.
CONFIGURATIONS = (Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"))
CREDENTIALS = re.compile(r"://[^/\s@]*@")
PORT = re.compile(r"(?:://|^)[^/\s:]+:([0-9]{1,5})")
LOCAL = re.compile(r"(?:file://)?(/[^\s'\",]+)")


def index_options(variables: Mapping[str, str]) -> list[str]:
    """pip's options for the worker's PIP_ variables; BuildError where one holds a password."""
    given = {name: variables[f"PIP_{name}"] for name in (*LISTS, *VALUES) if variables.get(f"PIP_{name}")}
    refuse_credentials({f"PIP_{name}": value for name, value in given.items()})
    options: list[str] = []
    for name, value in given.items():
        option = f"--{name.lower().replace('_', '-')}".replace("--default-timeout", "--timeout")
        for word in value.split() if name in LISTS else [value]:
            options += [option, word]
    on = [name for name in FLAGS if variables.get(f"PIP_{name}", "").lower() not in OFF]
    return [*options, *(f"--{name.lower().replace('_', '-')}" for name in on)]


def refuse_credentials(variables: Mapping[str, str]) -> None:
    """BuildError where a variable's address holds a user or a password: what is built could read it."""
    for name, value in variables.items():
        if CREDENTIALS.search(value):
            raise BuildError(
                f"{name} of the measuring machine holds a password, which packages could read while they are "
                "built: give an address without one, such as that of a proxy for the index."
            )


def index_ports(variables: Mapping[str, str], configurations: Iterable[Path] | None = None) -> list[int]:
    """The TCP ports of indexes, repositories and proxies, and of name servers for long answers.

    `configurations` are pip's files; None for those of this machine.
    """
    texts = [value for name, value in variables.items() if name.startswith("PIP_") or "proxy" in name.lower()]
    files = CONFIGURATIONS if configurations is None else configurations
    texts += [file.read_text(errors="replace") for file in files if file.is_file()]
    given = (int(port) for text in texts for port in PORT.findall(text))
    return sorted({22, 53, 80, 443, *(port for port in given if 0 < port < 65536)})


def local_sources(variables: Mapping[str, str]) -> list[Path]:
    """The files of this machine that packages come from, and pip's configuration where it has no secret."""
    return list(dict.fromkeys(list_sources(variables, CONFIGURATIONS)))


def list_sources(variables: Mapping[str, str], configurations: Iterable[Path]) -> Iterator[Path]:
    """The same, with what stands twice."""
    texts = [variables.get(f"PIP_{name}", "") for name in SOURCES]
    texts += [variables.get(name, "") for name in CERTIFICATES]
    for file in configurations:
        if file.is_file() and not CREDENTIALS.search(text := file.read_text(errors="replace")):
            yield file
            texts += configured_values(text)
    for text in texts:
        for found in LOCAL.findall(text):
            path = Path(found)
            if path.parent != path and path.exists() and not path.is_relative_to("/etc/ssl"):
                yield path


def configured_values(text: str) -> Iterator[str]:
    """What pip's configuration says of where packages come from; nothing where it can't be read."""
    parser = configparser.RawConfigParser()
    with contextlib.suppress(configparser.Error):
        parser.read_string(text)
        for section in parser.sections():
            for name in SOURCES:
                yield parser.get(section, name.lower().replace("_", "-"), fallback="")
