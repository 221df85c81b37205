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

from dashboard.access import Actor, AuditAction, record_action
from dashboard.models import Project
from dashboard.repositories import Git, RepositoryError
from dashboard.triggers import hook_scripts

IN_WORK_TREE = ("post-commit", "post-merge", "post-rewrite")
IN_BARE = ("post-receive",)
BLOCK_BYTES = 64  # of SHA-256
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class HookRefusedError(Exception):
    """The hook can't be installed; the message is one sentence for people."""


@dataclass(frozen=True)
class HookFolders:
    """A repository's folders, as git reports them."""

    git_folder: Path
    hooks: Path
    bare: bool

    @property
    def hook_paths(self) -> list[Path]:
        return [self.hooks / name for name in (IN_BARE if self.bare else IN_WORK_TREE)]


def install_hooks(
    project: Project, folder: Path, *, renew_secret: bool = False, actor: Actor | None = None
) -> list[Path]:
    """Write (or renew) the hooks of the repository in `folder`; their paths. Raises HookRefusedError.

    A project without a hook secret gets one. `actor`: who does it, for the audit log.
    """
    for tool in ("openssl", "curl"):
        if shutil.which(tool) is None:
            raise HookRefusedError(f"The hook needs {tool}, which is not on the PATH: install it first.")
    folders = find_repository(folder)
    if renew_secret or not project.hook_secret:
        project.hook_secret = secrets.token_urlsafe(32)
        project.save(update_fields=["hook_secret"])
    try:
        set_existing_aside(folders.hook_paths)
        write_hooks(project, folders)
    except OSError as error:
        raise HookRefusedError(f"{error.filename} can't be written: {error.strerror}.") from error
    if actor is not None:
        record_action(actor, AuditAction.HOOK_INSTALLED, project, project, renewed=renew_secret)
    return folders.hook_paths


def find_repository(folder: Path) -> HookFolders:
    if not folder.is_dir():
        raise HookRefusedError(f"{folder} is not a folder on this machine: name the repository's own folder.")
    arguments = ["--git-common-dir", "--git-path", "hooks", "--is-bare-repository"]
    try:
        # Without the options that hide where the hooks are.
        out = Git(options=("-c", "safe.directory=*")).run(["rev-parse", *arguments], folder=folder)
    except RepositoryError as error:
        raise HookRefusedError(f"{folder} is not a git repository: {error}") from error
    common, hooks, bare = out.decode().splitlines()
    folders = HookFolders((folder / common).resolve(), (folder / hooks).resolve(), bare == "true")
    if folders.git_folder not in folders.hooks.parents and folder.resolve() not in folders.hooks.parents:
        raise HookRefusedError(
            f"core.hooksPath is {folders.hooks}, which other repositories may share: unset it here first."
        )
    return folders


def set_existing_aside(hooks: list[Path]) -> None:
    """Rename hooks that aren't ours, all or none; ours run them first."""
    moves = {
        hook: hook.with_name(hook.name + hook_scripts.EXISTING_SUFFIX) for hook in hooks if is_foreign(hook)
    }
    for hook, aside in moves.items():
        if aside.exists():
            raise HookRefusedError(f"{hook} and {aside} are both there already: remove one of them.")
    for hook, aside in moves.items():
        hook.rename(aside)


def is_foreign(hook: Path) -> bool:
    return hook.exists() and hook_scripts.MARKER not in hook.read_text(errors="replace")


def write_hooks(project: Project, folders: HookFolders) -> None:
    own_folder = folders.git_folder / "paceline"
    own_folder.mkdir(mode=0o755, exist_ok=True)
    folders.hooks.mkdir(exist_ok=True)
    inner, outer = hmac_key_blocks(project.hook_secret.encode())
    url = settings.PACELINE_URL + reverse("hook", args=[project.slug])
    # A proxy that the committer's environment names can't know what this machine calls itself.
    options = "--noproxy '*'" if urlsplit(url).hostname in LOOPBACK else ""
    notify = hook_scripts.NOTIFY.replace("{{url}}", shlex.quote(url)).replace(
        "{{options}} ", options and f"{options} "
    )
    shared = folders.git_folder.stat().st_mode & 0o020
    replace_file(own_folder / "inner", inner, 0o640 if shared else 0o600, folders)
    replace_file(own_folder / "outer", outer, 0o640 if shared else 0o600, folders)
    replace_file(own_folder / "notify", notify.encode(), 0o755, folders)
    replace_file(own_folder / "last", b"", 0o664 if shared else 0o644, folders)
    text = hook_scripts.POST_RECEIVE if folders.bare else hook_scripts.IN_WORK_TREE
    for hook in folders.hook_paths:
        replace_file(hook, text.encode(), 0o755, folders)
    give_to_owner(own_folder, folders)


def hmac_key_blocks(key: bytes) -> tuple[bytes, bytes]:
    """The two blocks that HMAC (RFC 2104) hashes before the message and before the inner digest."""
    padded = (hashlib.sha256(key).digest() if len(key) > BLOCK_BYTES else key).ljust(BLOCK_BYTES, b"\x00")
    return bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)


def replace_file(path: Path, data: bytes, mode: int, folders: HookFolders) -> None:
    """Rename a complete file to `path`: a commit that runs just now sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.chmod(mode)
    give_to_owner(draft, folders)
    draft.rename(path)


def give_to_owner(path: Path, folders: HookFolders) -> None:
    """What root installs belongs to the repository's owner, or whoever commits here couldn't read it."""
    if os.getuid() == 0:
        owner = folders.git_folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
