"""What the test of a repository found, in words: what is wrong, and what to do about it."""

from __future__ import annotations

from dashboard.models import RepositoryTest
from dashboard.project_setup.allowed_repositories import PERMISSION, remote_host

Outcome = RepositoryTest.Outcome


def outcome_sentence(test: RepositoryTest) -> str:
    """What was found, in one sentence; empty while it is under way."""
    host = remote_host(test.repository)
    name = host[0] if host else "this machine"
    match test.outcome:
        case Outcome.READABLE:
            return f"The repository can be fetched; its branch {test.facts['branch']} is read."
        case Outcome.INTERNAL_ADDRESS:
            return f"{name} is an internal address, and this site doesn't fetch from those."
        case Outcome.NO_HOST:
            return f"There is no host {name}: its name has no address."
        case Outcome.NO_ANSWER:
            return f"{name} can't be reached."
        case Outcome.CREDENTIALS_MISSING:
            return f"{name} asks for a user and a password, or has no such repository for everybody."
        case Outcome.CREDENTIALS_REFUSED:
            return f"{name} refuses this user and password."
        case Outcome.KEY_REFUSED:
            return f"{name} knows no key of this site."
        case Outcome.HOST_KEY:
            return f"The key by which {name} is known isn't one that this site trusts."
        case Outcome.CERTIFICATE:
            return f"The certificate of {name} can't be verified."
        case Outcome.REDIRECTED:
            return "The address leads on to another one, which this site doesn't follow."
        case Outcome.NOT_FOUND:
            return f"There is no git repository at this address of {name}."
        case Outcome.EMPTY:
            return "The repository is empty: it has no branch with a commit yet."
        case Outcome.NO_BRANCH:
            return f"The repository has no branch {test.branch!r}."
        case Outcome.TOO_SLOW:
            return "The repository answers, but its newest commit took too long to fetch."
        case Outcome.OTHER:
            return "git can't read the repository."
    return ""


def outcome_advice(test: RepositoryTest) -> str:
    """What to do about it; empty where nothing is wrong."""
    return ADVICE.get(test.outcome, "")


ADVICE: dict[str, str] = {
    Outcome.INTERNAL_ADDRESS: f"Whoever runs the site allows them by {PERMISSION}=true.",
    Outcome.NO_HOST: "Is it spelt right? Whoever runs the site knows which names it can look up.",
    Outcome.NO_ANSWER: "Is the port right, and is the host up? A firewall may be between it and this site.",
    Outcome.CREDENTIALS_MISSING: (
        "Give a user and a password. Most forges take an access token as the password; it needs to read code "
        "and nothing else."
    ),
    Outcome.CREDENTIALS_REFUSED: "Has the token expired, and may it read this repository?",
    Outcome.KEY_REFUSED: (
        "Add the public key of the account that the site runs as to the repository, as a deploy key that may "
        "read; or use the https:// address with a token."
    ),
    Outcome.HOST_KEY: (
        "Whoever runs the site adds it to known_hosts of the account that the site runs as, once they have "
        "compared it; or use the https:// address."
    ),
    Outcome.CERTIFICATE: "Has it expired? The site has to trust an authority of your own, too.",
    Outcome.REDIRECTED: "Give the repository's own address; it often ends in .git.",
    Outcome.NOT_FOUND: "Is the path right? A private repository may hide itself from who may not read it.",
    Outcome.EMPTY: "Push a first commit, then test it again.",
    Outcome.NO_BRANCH: "Choose one of its branches.",
    Outcome.TOO_SLOW: "Test it again; manage.py add_project has more patience with a large one.",
}


def manifest_sentence(test: RepositoryTest) -> str:
    """What is wrong with the newest commit's manifest; empty where it can be used."""
    if refused := test.facts.get("manifest_refused"):
        return f"{str(refused).rstrip('.')}."
    if test.facts.get("manifest") is None:
        return f"Commit {str(test.facts['commit']['hash'])[:10]} has no paceline.toml."
    return ""
