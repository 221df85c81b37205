"""The site's API as a host calls it: one HTTP request per call, with the host's token."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from dashboard.host_protocol import (
    PROTOCOL,
    Assignment,
    CountedAnswer,
    Lease,
    MessageError,
    MessageFields,
    PairMeasured,
    pair_message,
    read_assignment,
    read_counted_answer,
    read_message,
)
from dashboard.host_protocol.messages import lease_message
from workers.host.configuration import HostIdentity
from workers.host.errors import (
    BadDocumentError,
    CheckoutError,
    HostOutdated,
    JoinRefused,
    LeaseLost,
    SiteAway,
    SiteBroken,
    TokenRefused,
)

TIMEOUT_SECONDS = 30
# A site brings a commit from its repository meanwhile.
BRING_SECONDS = 120
STORE_SECONDS = 120
LARGEST_ANSWER = 8 * 1024 * 1024
LEASE_HEADER = "Paceline-Lease"
# What each status means to a host. Any other one of 5xx, and no answer at all, is SiteAway.
FAILURES: dict[int, type[Exception]] = {
    HTTPStatus.UNAUTHORIZED: TokenRefused,
    HTTPStatus.FORBIDDEN: JoinRefused,
    HTTPStatus.CONFLICT: LeaseLost,
    HTTPStatus.UNPROCESSABLE_ENTITY: BadDocumentError,
    HTTPStatus.FAILED_DEPENDENCY: CheckoutError,
    HTTPStatus.UPGRADE_REQUIRED: HostOutdated,
    HTTPStatus.BAD_REQUEST: SiteBroken,
    HTTPStatus.INTERNAL_SERVER_ERROR: SiteBroken,
}


REDIRECTS = (301, 302, 303, 307, 308)
# Refusals that may not come again.
PASSING_STATUSES = (408, 425, 429)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: urllib would send the token to wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirects)


class SiteClient:
    """Calls of one host. Each raises SiteAway where the site can't be reached: then try again."""

    def __init__(self, site: str, token: str = "") -> None:
        self.site = site
        self._token = token

    @classmethod
    def of_identity(cls, identity: HostIdentity) -> SiteClient:
        return cls(identity.site, identity.token)

    def join(self, code: str, machines: Sequence[str]) -> list[HostIdentity]:
        """An identity for each machine of the host, for a code that was made for it; JoinRefused."""
        with self._reading():
            given = self.call("join", {"code": code, "machines": list(machines)}).objects("machines")
            return [HostIdentity(self.site, each.text("machine"), each.text("token")) for each in given]

    def register(
        self,
        version: str,
        fingerprint: Mapping[str, Any],
        kept_runs: Sequence[int] = (),
        box: Mapping[str, Any] | None = None,
        same_agent: bool = False,
    ) -> MessageFields:
        """Say that the agent starts, with the keys of the runs whose documents it still has to hand in.

        `same_agent`: only its worker begins anew.
        """
        message = {
            "protocol": PROTOCOL,
            "version": version,
            "fingerprint": dict(fingerprint),
            "kept_runs": list(kept_runs),
            "box": box,
            "same_agent": same_agent,
        }
        return self.call("register", message)

    def heartbeat(self, free_bytes: int | None = None) -> str:
        """Say that the host lives, and how much its disk has left; the state that people have put it in."""
        with self._reading():
            return self.call("heartbeat", {"free_bytes": free_bytes}).text("state")

    def stopping(self, kept_runs: Sequence[int] = ()) -> None:
        """Say that somebody ends the agent: what it held is free for others at once, but what it has kept."""
        self.call("stopping", {"kept_runs": list(kept_runs)})

    def claim(self, fingerprint: Mapping[str, Any]) -> Assignment | None:
        """The next run or experiment; None where there is nothing to do."""
        answer = self.call("claim", {"fingerprint": dict(fingerprint)})
        return (
            None if answer.values.get("assignment") is None else read_assignment(answer.inside("assignment"))
        )

    def bring_commit(self, project: str, commit: str) -> None:
        """Have the site fetch a commit, for us to fetch it from there; CheckoutError says why not."""
        self.call("bring-commit", {"project": project, "commit": commit}, timeout=BRING_SECONDS)

    def repository_address(self, project: str) -> str:
        """Where git finds the project's repository; it holds the token."""
        parts = urlsplit(f"{self.site}/api/v1/host/git/{quote(project)}.git")
        return urlunsplit(parts._replace(netloc=f"host:{quote(self._token)}@{parts.netloc}"))

    def advance_run(
        self,
        lease: Lease,
        state: str,
        box: Mapping[str, Any] | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        """Move the run on; with `measuring` comes what describes the box that its code is in.

        `costs`: with `storing`, the seconds that this host spent on it beside its harness, by part.
        """
        message = {"lease": lease_message(lease), "state": state, "box": box, "costs": dict(costs or {})}
        self.call("runs/advance", message)

    def heartbeat_run(self, lease: Lease, progress: float | None, text: str, log: str) -> bool:
        """Renew the lease. False: it is no longer ours."""
        message = {"lease": lease_message(lease), "progress": progress, "text": text, "log": log}
        return self._is_held("runs/heartbeat", message)

    def fail_run(self, lease: Lease, failure: str, reason: str, log: str) -> None:
        message = {"lease": lease_message(lease), "failure": failure, "reason": reason[:10_000], "log": log}
        self.call("runs/fail", message)

    def store_document(self, lease: Lease, document: bytes) -> None:
        """Hand in a run's document; BadDocumentError says why it is refused. Safe to repeat."""
        header = f"{lease.key} {lease.attempt} {lease.token}"
        self._send("runs/document", document, {LEASE_HEADER: header}, STORE_SECONDS)

    def heartbeat_experiment(self, lease: Lease, text: str) -> bool:
        return self._is_held("experiments/heartbeat", {"lease": lease_message(lease), "text": text})

    def add_pair(self, lease: Lease, pair: PairMeasured, commands: Sequence[str]) -> str:
        """Hand in a pair; the verdict, or nothing where another pair is wanted. Safe to repeat."""
        message = {"lease": lease_message(lease), "pair": pair_message(pair), "commands": list(commands)}
        with self._reading():
            return self.call("experiments/pair", message).text("verdict")

    def keep_profiles(
        self, lease: Lease, documents: Mapping[str, Mapping[str, Any]], seconds: float, repetition: str
    ) -> CountedAnswer:
        """Hand in what both sides' counted repetitions say; by `repetition` the site knows it again."""
        counted = {"documents": dict(documents), "seconds": seconds, "repetition": repetition}
        message = {"lease": lease_message(lease), **counted}
        with self._reading():
            return read_counted_answer(self.call("experiments/profiles", message))

    def conclude_experiment(self, lease: Lease, reason: str, seconds: float) -> None:
        """Say why an experiment can't be measured."""
        message = {"lease": lease_message(lease), "reason": reason[:10_000], "seconds": seconds}
        self.call("experiments/conclude", message)

    def call(self, path: str, message: Mapping[str, Any], timeout: float = TIMEOUT_SECONDS) -> MessageFields:
        """The answer to a message."""
        return self._send(path, json.dumps(message, allow_nan=False).encode(), {}, timeout)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """An answer that can't be read was given by something else: a proxy's page, another service."""
        try:
            yield
        except MessageError as error:
            raise SiteAway(f"{self.site} doesn't answer as a site: {error}") from error

    def _is_held(self, path: str, message: Mapping[str, Any]) -> bool:
        try:
            with self._reading():
                return self.call(path, message).flag("held")
        except LeaseLost:
            return False

    def _send(self, path: str, body: bytes, headers: Mapping[str, str], timeout: float) -> MessageFields:
        sent = {"Content-Type": "application/json", **headers}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        # The scheme is one of two: the address was checked when the host joined.
        request = urllib.request.Request(f"{self.site}/api/v1/host/{path}", body, sent)  # noqa: S310
        try:
            with OPENER.open(request, timeout=timeout) as answer, self._reading():
                return read_message(answer.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            raise self._failure(error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise SiteAway(f"{self.site} can't be reached: {reason}.") from error

    def _failure(self, error: urllib.error.HTTPError) -> Exception:
        try:
            detail = read_message(error.read(LARGEST_ANSWER)).text("detail")
        except (MessageError, OSError, http.client.HTTPException):
            detail = f"{self.site} answers {error.code} {error.reason}."
        if error.code in REDIRECTS:
            detail = f"{self.site} redirects to {error.headers.get('Location')}: give that address as --site."
        refused = SiteBroken if error.code < HTTPStatus.INTERNAL_SERVER_ERROR else SiteAway
        return FAILURES.get(error.code, SiteAway if error.code in PASSING_STATUSES else refused)(detail)
