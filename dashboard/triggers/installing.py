"""Writing the git hooks into a repository on this machine."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse

from dashboard.models import Project
from dashboard.repositories import RepositoryError, git
from dashboard.triggers import scripts

IN_WORK_TREE = ("post-commit", "post-merge", "post-rewrite")
IN_BARE = ("post-receive",)
BLOCK = 64  # bytes, of SHA-256
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class HookRefusedError(Exception):
    """The hook can't be installed; the message is one sentence for people."""


@dataclass(frozen=True)
class Place:
    """A repository's folders, as git names them."""

    git_folder: Path
    hooks: Path
    bare: bool

    @property
    def paths(self) -> list[Path]:
        return [self.hooks / name for name in (IN_BARE if self.bare else IN_WORK_TREE)]


def install(project: Project, folder: Path) -> list[Path]:
    """Write (or renew) the hooks of the repository in `folder`; their paths. Raises HookRefusedError.

    A project without a hook secret gets one.
    """
    for tool in ("openssl", "curl"):
        if shutil.which(tool) is None:
            raise HookRefusedError(f"The hook needs {tool}, which is not on the PATH: install it first.")
    place = find(folder)
    if not project.hook_secret:
        project.hook_secret = secrets.token_urlsafe(32)
        project.save(update_fields=["hook_secret"])
    try:
        keep_existing(place.paths)
        write(project, place)
    except OSError as error:
        raise HookRefusedError(f"{error.filename} can't be written: {error.strerror}.") from error
    return place.paths


def find(folder: Path) -> Place:
    if not folder.is_dir():
        raise HookRefusedError(f"{folder} is not a folder on this machine: name the repository's own folder.")
    asked = ["--git-common-dir", "--git-path", "hooks", "--is-bare-repository"]
    try:
        out = git.run(folder, ["-c", "safe.directory=*", "rev-parse", *asked])
    except RepositoryError as error:
        raise HookRefusedError(f"{folder} is not a git repository: {error}") from error
    common, hooks, bare = out.decode().splitlines()
    place = Place((folder / common).resolve(), (folder / hooks).resolve(), bare == "true")
    if place.git_folder not in place.hooks.parents and folder.resolve() not in place.hooks.parents:
        raise HookRefusedError(
            f"core.hooksPath is {place.hooks}, which other repositories may share: unset it here first."
        )
    return place


def keep_existing(hooks: list[Path]) -> None:
    """Move hooks that aren't ours aside, all or none; ours run them first."""
    moves = {hook: hook.with_name(hook.name + scripts.KEPT) for hook in hooks if is_foreign(hook)}
    for hook, aside in moves.items():
        if aside.exists():
            raise HookRefusedError(f"{hook} and {aside} are both there already: remove one of them.")
    for hook, aside in moves.items():
        hook.rename(aside)


def is_foreign(hook: Path) -> bool:
    return hook.exists() and scripts.MARKER not in hook.read_text(errors="replace")


def write(project: Project, place: Place) -> None:
    ours = place.git_folder / "paceline"
    ours.mkdir(mode=0o755, exist_ok=True)
    place.hooks.mkdir(exist_ok=True)
    inner, outer = key_blocks(project.hook_secret.encode())
    url = settings.PACELINE_URL + reverse("hook", args=[project.slug])
    # A proxy that the committer's environment names can't know what this machine calls itself.
    options = "--noproxy '*'" if urlsplit(url).hostname in LOOPBACK else ""
    notify = scripts.NOTIFY.replace("{{url}}", shlex.quote(url)).replace(
        "{{options}} ", options and f"{options} "
    )
    shared = place.git_folder.stat().st_mode & 0o020
    put(ours / "inner", inner, 0o640 if shared else 0o600, place)
    put(ours / "outer", outer, 0o640 if shared else 0o600, place)
    put(ours / "notify", notify.encode(), 0o755, place)
    put(ours / "last", b"", 0o664 if shared else 0o644, place)
    text = scripts.POST_RECEIVE if place.bare else scripts.IN_WORK_TREE
    for hook in place.paths:
        put(hook, text.encode(), 0o755, place)
    own(ours, place)


def key_blocks(key: bytes) -> tuple[bytes, bytes]:
    """The two blocks that HMAC (RFC 2104) hashes before the message and before the inner digest."""
    padded = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\x00")
    return bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)


def put(path: Path, data: bytes, mode: int, place: Place) -> None:
    """Rename a whole file into place: a commit that runs just now sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.chmod(mode)
    own(draft, place)
    draft.rename(path)


def own(path: Path, place: Place) -> None:
    """What root installs belongs to the repository's owner, or whoever commits here couldn't read it."""
    if os.getuid() == 0:
        owner = place.git_folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
