"""What a host keeps of itself in its home: where its site is, its token, and what its owner allows."""

from __future__ import annotations

import json
import logging.config
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dashboard import structured_logs
from dashboard.repositories import safe_name
from workers.host.box.box import Sandbox, read_sandbox

IDENTITY_FILE = "host.json"
REGISTRATION_FILE = "registration.json"
HOW_TO_JOIN = "give --site and --code once, or make host SITE=https://host:8000 CODE=join_..."


class ConfigurationError(Exception):
    """The host can't start; one sentence says why."""


@dataclass(frozen=True)
class HostIdentity:
    """Who the host is for its site; `token` is a secret."""

    site: str
    machine: str
    token: str


@dataclass(frozen=True)
class Registration:
    """What the site answered when the agent started. `broker` is a secret, and empty where there is none."""

    pool: str
    lease_seconds: int
    broker: str


@dataclass(frozen=True)
class OwnerSettings:
    """What the host's owner allows: `memory_bytes` for each measured process, `disk_bytes` for what is kept.

    None is all there is. Without a box nothing but `unboxed_project` is measured, unless the sandbox is off.
    """

    memory_bytes: int | None = None
    disk_bytes: int | None = None
    sandbox: Sandbox = field(default_factory=Sandbox)
    unboxed_project: str = ""

    def goes_without_box(self, project: str) -> bool:
        return self.sandbox.mode == "off" or (bool(project) and project == self.unboxed_project)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> OwnerSettings:
        """From PACELINE_* variables; ConfigurationError names one that can't be used."""
        try:
            sandbox = read_sandbox(variables)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        return cls(
            sandbox=sandbox,
            unboxed_project=variables.get("PACELINE_UNBOXED_PROJECT", ""),
            memory_bytes=read_count(variables, "PACELINE_MEMORY_LIMIT") or None,
            disk_bytes=read_count(variables, "PACELINE_DISK_LIMIT") or None,
        )


@dataclass(frozen=True)
class HostConfiguration:
    """All that a measuring process needs to know."""

    home: Path
    identity: HostIdentity
    registration: Registration
    owner: OwnerSettings


def configure_logging(variables: Mapping[str, str]) -> None:
    """Lines to stderr; PACELINE_LOG_FORMAT is `line` or `json`. ConfigurationError where it is neither."""
    chosen = variables.get("PACELINE_LOG_FORMAT", "").strip() or "line"
    if chosen not in structured_logs.FORMATS:
        known = ", ".join(structured_logs.FORMATS)
        raise ConfigurationError(f"PACELINE_LOG_FORMAT must be one of {known}, not {chosen!r}.")
    logging.config.dictConfig(structured_logs.logging_settings("INFO", chosen))


def identity_folder(home: Path, slot: str = "") -> Path:
    """Where a host, or one of its slots, keeps who it is. All else of a home is shared by its slots."""
    return home / "slots" / safe_name(slot) if slot else home


def load_configuration(home: Path, slot: str = "") -> HostConfiguration:
    """What the agent of this home and slot has written; ConfigurationError where it hasn't."""
    folder = identity_folder(home, slot)
    identity = read_identity(folder)
    if identity is None:
        raise ConfigurationError(f"No host has joined in {folder}.")
    written = read_private_file(folder / REGISTRATION_FILE)
    if written is None:
        raise ConfigurationError(f"The agent of {folder} hasn't registered yet.")
    return HostConfiguration(
        home, identity, Registration(**written), OwnerSettings.from_environment(os.environ)
    )


def read_identity(folder: Path) -> HostIdentity | None:
    """None where the host hasn't joined."""
    written = read_private_file(folder / IDENTITY_FILE)
    return None if written is None else HostIdentity(**written)


def write_identity(folder: Path, identity: HostIdentity) -> None:
    write_private_file(folder / IDENTITY_FILE, asdict(identity))


def write_registration(folder: Path, registration: Registration) -> None:
    write_private_file(folder / REGISTRATION_FILE, asdict(registration))


def read_private_file(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be read: {error}.") from error


def write_private_file(path: Path, values: Mapping[str, Any]) -> None:
    """Renamed into place, and readable by this account alone from its first byte on."""
    draft = path.with_name(f"{path.name}.draft")
    try:
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(dict(values), file)
        draft.rename(path)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror}.") from error


def read_count(variables: Mapping[str, str], name: str) -> int:
    """A whole number from a variable, 0 where it isn't set."""
    text = variables.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ConfigurationError(f"{name} must be a whole number, not {text!r}.")
    return int(text or 0)


def check_site_address(address: str) -> str:
    """The site's address without a slash at its end; ConfigurationError where it is none."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigurationError(
            f"The site's address must be like https://paceline.example, not {address!r}."
        )
    return address.rstrip("/")
