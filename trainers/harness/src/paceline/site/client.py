"""Requests to the API of a site, with a token of one of its projects."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from .. import __version__
from .errors import SiteError

SITE_VARIABLE, TOKEN_VARIABLE = "PACELINE_SITE", "PACELINE_TOKEN"
API = "/api/v1"
TIMEOUT_SECONDS = 120
LARGEST_ANSWER = 16 * 2**20
# After answers that may be another one soon.
PAUSES = (1.0, 3.0, 10.0, 30.0)
PASSING_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
LONGEST_PAUSE = 60.0


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: urllib would send the token to wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirects)


@dataclass(frozen=True, slots=True)
class Site:
    """`address` is that of its overview. The token isn't shown."""

    address: str
    token: str = field(repr=False)

    def project(self) -> str:
        """The project that the token is of."""
        return str(self.send("GET", "/token")["project"])

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        repeatable: bool = True,
    ) -> Any:
        """The JSON of the answer. What is `repeatable` is asked again where the site may be back soon.

        Raises SiteError.
        """
        url = f"{self.address}{API}{path}" + (f"?{urlencode(query)}" if query else "")
        pauses = list(PAUSES) if repeatable else []
        while True:
            try:
                return self._exchange(method, url, body)
            except _PassingError as error:
                if not pauses:
                    raise SiteError(str(error)) from error
                time.sleep(max(pauses.pop(0), min(error.pause, LONGEST_PAUSE)))

    def _exchange(self, method: str, url: str, body: bytes | None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": f"paceline/{__version__}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - checked by read_site
        try:
            with OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.loads(answer.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except urllib.error.URLError as error:
            raise _PassingError(f"{self.address} can't be reached: {error.reason}.") from error
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(f"{self.address} can't be reached: {error}.") from error
        except ValueError as error:
            raise SiteError(
                f"{self.address} answered with something else than JSON: is it a site?"
            ) from error

    def _refusal(self, error: urllib.error.HTTPError) -> SiteError | _PassingError:
        detail = _read_detail(error)
        if error.code == http.HTTPStatus.UNAUTHORIZED:
            return SiteError(
                f"{self.address} refuses the token: {detail or 'it is unknown, expired or revoked.'}"
            )
        if 300 <= error.code < 400:
            return SiteError(
                f"{self.address} leads elsewhere, to {error.headers.get('Location')}: name that."
            )
        sentence = f"{self.address} answered {error.code}: {detail}" if detail else ""
        sentence = sentence or f"{self.address} answered {error.code} {error.reason}."
        if error.code in PASSING_STATUSES:
            return _PassingError(sentence, _read_pause(error.headers.get("Retry-After")))
        return SiteError(detail or sentence)


class _PassingError(Exception):
    """No answer, or one that may soon be another; `pause`: for how many seconds the site wants peace."""

    def __init__(self, sentence: str, pause: float = 0.0) -> None:
        super().__init__(sentence)
        self.pause = pause


def _read_detail(error: urllib.error.HTTPError) -> str:
    """The sentence of a problem (RFC 9457)."""
    try:
        problem = json.loads(error.read(LARGEST_ANSWER))
    except (OSError, ValueError, http.client.HTTPException):
        return ""
    detail = problem.get("detail") if isinstance(problem, dict) else None
    return detail if isinstance(detail, str) else ""


def _read_pause(text: str | None) -> float:
    return float(text) if text and re.fullmatch(r"\d{1,6}", text) else 0.0


def read_site(
    address: str | None, token_file: Path | None, variables: Mapping[str, str] = os.environ
) -> Site:
    """The site of the arguments, or of the variables. Raises SiteError."""
    address = (address or variables.get(SITE_VARIABLE, "")).strip().rstrip("/")
    if not address:
        raise SiteError(f"There is no site: give --site or set {SITE_VARIABLE}.")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SiteError(f"--site: {address!r} must be like https://paceline.example.org.")
    token = token_file.read_text() if token_file else variables.get(TOKEN_VARIABLE, "")
    token = token.strip()
    if not token:
        raise SiteError(f"There is no token: set {TOKEN_VARIABLE}, or give --token-file.")
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise SiteError("The token holds a character that no token has.")
    return Site(address, token)
