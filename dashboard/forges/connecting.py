"""Connecting a project with its forge: what can't work is refused before it is stored."""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings

from dashboard.forges import bitbucket, gitea, github, gitlab
from dashboard.forges.client import PERMISSION
from dashboard.forges.errors import ForgeAnswerError
from dashboard.forges.events import ForgeKind
from dashboard.forges.forge import forge_of
from dashboard.forges.json_fields import REPOSITORY
from dashboard.forges.signatures import SIGNING_TOKEN
from dashboard.models import ForgeConnection, Project
from dashboard.outgoing_http import WrongUrlError, parse_url
from dashboard.secrets import is_lost

API_ADDRESSES = {
    ForgeKind.GITHUB: github.API_ADDRESS,
    ForgeKind.GITLAB: gitlab.API_ADDRESS,
    ForgeKind.BITBUCKET: bitbucket.API_ADDRESS,
}
# Where the API of a forge is that people run themselves, when they name the host alone.
API_PATHS = {ForgeKind.GITHUB: "/api/v3", ForgeKind.GITLAB: gitlab.API_PATH, ForgeKind.GITEA: gitea.API_PATH}
TOKEN = re.compile(r"[\x21-\x7e]{8,1000}")
NUMBER = re.compile(r"[0-9A-Za-z.]{1,20}")
LONGEST_KEY = 20_000


class ConnectingError(Exception):
    """The project can't be connected; the message is one sentence for people. `field`: of what is wrong."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True)
class ConnectionRequest:
    """What somebody asks for; the token isn't shown."""

    kind: str
    repository: str
    token: str = field(repr=False)
    api_address: str = ""
    app_id: str = ""
    installation: str = ""


def connect_project(
    project: Project, wanted: ConnectionRequest, *, renew_secret: bool = False
) -> tuple[ForgeConnection, bool]:
    """The connection, once its forge has answered, and whether its webhook secret is new."""
    connection, new = try_connection(project, wanted, renew_secret=renew_secret)
    connection.save()
    return connection, new


def try_connection(
    project: Project, wanted: ConnectionRequest, *, renew_secret: bool = False
) -> tuple[ForgeConnection, bool]:
    """As `connect_project`, but nothing is stored yet."""
    kind = ForgeKind(wanted.kind)
    connection = ForgeConnection.objects.filter(project=project).first() or ForgeConnection(project=project)
    if (connection.kind, connection.repository) != (kind, wanted.repository):
        connection.open_pull_requests = {}
    new = renew_secret or not connection.webhook_secret or is_lost(connection.webhook_secret)
    connection.kind = kind
    connection.repository = check_repository(kind, wanted.repository)
    connection.api_address = check_api_address(kind, wanted.api_address)
    connection.app_id, connection.installation = check_app(kind, wanted)
    connection.token = check_token(wanted.token, is_key=bool(wanted.app_id))
    if new:
        connection.webhook_secret = make_webhook_secret()
    try:
        forge_of(connection).check_access()
    except ForgeAnswerError as error:
        raise ConnectingError(str(error)) from error
    return connection, new


def make_webhook_secret() -> str:
    """In the form that GitLab asks of signing tokens; all others take any text."""
    return SIGNING_TOKEN + base64.b64encode(secrets.token_bytes(32)).decode()


def check_repository(kind: ForgeKind, repository: str) -> str:
    parts = repository.split("/")
    nested = kind == ForgeKind.GITLAB
    if (
        not REPOSITORY.fullmatch(repository)
        or len(repository) > 300
        or {".", ".."} & set(parts)
        or (len(parts) > 2 and not nested)
    ):
        form = "group/name" if nested else "owner/name"
        raise ConnectingError(
            f"{repository[:200]!r} isn't a repository of {kind}: write {form}.", "repository"
        )
    return repository


def check_api_address(kind: ForgeKind, address: str) -> str:
    """The API's address, completed where it names a host alone."""
    address = address.rstrip("/") or API_ADDRESSES.get(kind, "")
    if not address:
        raise ConnectingError(f"{kind} has no address of its own: name the host of yours.", "api_address")
    try:
        url = parse_url(address, "The address of the API")
    except WrongUrlError as error:
        raise ConnectingError(str(error), "api_address") from error
    if url.query or url.fragment or len(address) > 400:
        raise ConnectingError("The address of the API must be like https://host/path.", "api_address")
    if url.scheme == "http" and not getattr(settings, PERMISSION):
        raise ConnectingError(
            f"The address of the API must begin with https://: a token would be sent in the clear. "
            f"{PERMISSION} allows http:// too.",
            "api_address",
        )
    own = urlsplit(API_ADDRESSES.get(kind, "")).hostname
    if not url.path and url.hostname != own:
        address += API_PATHS.get(kind, "")
    return address


def check_app(kind: ForgeKind, wanted: ConnectionRequest) -> tuple[str, str]:
    if (wanted.app_id or wanted.installation) and kind != ForgeKind.GITHUB:
        raise ConnectingError("Only GitHub has apps: leave the numbers of one out.", "app_id")
    if wanted.installation and not wanted.app_id:
        raise ConnectingError("The number of an installation needs that of its app.", "installation")
    for name, value in (("app_id", wanted.app_id), ("installation", wanted.installation)):
        if value and not NUMBER.fullmatch(value):
            what = "app" if name == "app_id" else "installation"
            raise ConnectingError(f"The number of the {what} must be the one that GitHub shows.", name)
    return wanted.app_id, wanted.installation


def check_token(token: str, *, is_key: bool) -> str:
    """The token; never shown, whatever is wrong with it."""
    token = token.strip()
    if not token:
        raise ConnectingError("The token is empty.", "token")
    if is_key:
        if len(token) > LONGEST_KEY or "-----BEGIN" not in token:
            raise ConnectingError(
                "An app is known by its private key: give what its .pem file holds.", "token"
            )
    elif not TOKEN.fullmatch(token):
        raise ConnectingError("The token must be 8 to 1000 printable characters without spaces.", "token")
    return token
