"""The forge of a connection: its kind, its address, and its secret as headers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from dashboard.forges import bitbucket, gitea, github, gitlab
from dashboard.forges.client import Client
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.events import ForgeKind
from dashboard.forges.forge_api import Forge
from dashboard.forges.github_app import GitHubApp
from dashboard.models import ForgeConnection
from dashboard.secrets import is_lost

GITHUB_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def forge_of(connection: ForgeConnection) -> Forge:
    """What answers for a connection. Sends nothing yet; raises ForgeRefused where its token can't be read."""
    if is_lost(connection.token) or not connection.token:
        raise ForgeRefused(
            f"The token of {connection.project}'s forge can't be read any more: run connect_forge again."
        )
    return MAKERS[ForgeKind(connection.kind)](connection)


def make_github(connection: ForgeConnection) -> Forge:
    token = connection.token
    if not connection.app_id:
        client = make_client(connection, "GitHub", {"Authorization": f"Bearer {token}"}, GITHUB_HEADERS)
        return github.GitHubForge(client, connection.repository)
    app = GitHubApp(connection.app_id, token, connection.repository, connection.installation)
    app_client = Client(connection.api_address, "GitHub", app.app_authorization, GITHUB_HEADERS)
    client = Client(connection.api_address, "GitHub", lambda: app.authorization(app_client), GITHUB_HEADERS)
    return github.GitHubForge(client, connection.repository, connection.app_id)


def make_gitlab(connection: ForgeConnection) -> Forge:
    client = make_client(connection, gitlab.NAME, {"PRIVATE-TOKEN": connection.token})
    return gitlab.GitLabForge(client, connection.repository)


def make_gitea(connection: ForgeConnection) -> Forge:
    client = make_client(connection, gitea.GiteaForge.NAME, {"Authorization": f"token {connection.token}"})
    return gitea.GiteaForge(client, connection.repository)


def make_bitbucket(connection: ForgeConnection) -> Forge:
    token = connection.token
    # An access token stands alone, an API token behind its account's e-mail address.
    if ":" in token:
        authorization = "Basic " + base64.b64encode(token.encode()).decode()
    else:
        authorization = f"Bearer {token}"
    client = make_client(connection, bitbucket.NAME, {"Authorization": authorization})
    return bitbucket.BitbucketForge(client, connection.repository)


def make_client(
    connection: ForgeConnection,
    name: str,
    authorization: Mapping[str, str],
    headers: Mapping[str, str] | None = None,
) -> Client:
    secrets = (connection.token, *authorization.values())
    return Client(connection.api_address, name, lambda: authorization, headers or {}, secrets)


MAKERS: Mapping[ForgeKind, Callable[[ForgeConnection], Forge]] = {
    ForgeKind.GITHUB: make_github,
    ForgeKind.GITLAB: make_gitlab,
    ForgeKind.GITEA: make_gitea,
    ForgeKind.BITBUCKET: make_bitbucket,
}
