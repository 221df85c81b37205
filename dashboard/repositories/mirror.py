"""A project's repository as this host knows it: a bare mirror, the same for site and workers."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dashboard.repositories.child import Output
from dashboard.repositories.credentials import credential_variables, split_credentials
from dashboard.repositories.errors import (
    FetchTimeout,
    GitTimeout,
    RepositoryBusy,
    RepositoryError,
    Unreachable,
)
from dashboard.repositories.git import TIME_LIMIT, Git, hide_password, protocol_variables
from dashboard.repositories.hashes import FULL_HASH
from dashboard.repositories.locks import hold_lock, try_lock
from dashboard.repositories.waiting_threads import waiting_thread

FETCH_SECONDS = 600
LOCK_SECONDS = 20
REMOTE_SECONDS = 60
# Odd, not dangerous: a `transfer.fsckObjects` of the account doesn't refuse a repository for it.
ODD_BUT_HARMLESS = (
    *("badDate", "badDateOverflow", "badTimezone", "zeroPaddedDate", "missingSpaceBeforeDate"),
    *("badName", "badEmail", "missingEmail", "missingNameBeforeEmail", "missingSpaceBeforeEmail"),
    *("missingAuthor", "missingCommitter", "multipleAuthors", "nulInCommit", "zeroPaddedFilemode"),
)
# --no-auto-gc: nothing that git leaves behind may run beside a measurement.
FETCH = ("fetch", "--force", "--no-write-fetch-head", "--quiet", "--no-auto-gc")
# Heads and tags only: what others propose (refs/pull/...) isn't fetched before somebody may measure it.
REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
# Heads of pull requests, fetched one by one.
PROPOSED = "refs/proposed/"
# What a host fetched last: its history is what git tells the server that it has already.
FETCHED = "refs/heads/fetched"
# What a fetch or gc that was killed leaves behind: no other gets past the first, the second fill the disk.
LEFTOVERS = (
    *("*.lock", "refs/**/*.lock", "objects/info/**/*.lock", "objects/pack/*.lock"),
    *("objects/pack/tmp_*", "objects/pack/.tmp-*"),
)
# What a force-push left behind may have been measured: it can be looked at for ever.
SETTINGS = {"gc.pruneExpire": "never", "gc.cruftPacks": "true"}
# Stands before the account's own configuration, which may say something else.
DEFAULTS = """\
[core]
\tsshCommand = ssh -o BatchMode=yes -o ConnectTimeout=20
\taskPass = true
[fetch "fsck"]
""" + "".join(f"\t{name} = ignore\n" for name in ODD_BUT_HARMLESS)


@dataclass(frozen=True)
class RemoteHeads:
    """The newest commit of each branch, and the branch that HEAD names; empty where it names none."""

    tips: dict[str, str]
    default: str


@dataclass(frozen=True)
class Mirror:
    """`project` and `repository` are as people know them; HEAD names `branch`, if there is one."""

    folder: Path
    project: str
    # Not shown: it may hold a password.
    repository: str = field(repr=False)
    branch: str = ""
    git: Git = field(default_factory=Git, repr=False, compare=False)

    def run(self, arguments: Sequence[str], *, stdin: bytes = b"", time_limit: float = TIME_LIMIT) -> bytes:
        """The standard output of `git ARGUMENTS` in the mirror."""
        return self.git.run(
            arguments, folder=self.folder, variables=self.variables, stdin=stdin, time_limit=time_limit
        )

    def stream(self, arguments: Sequence[str], *, stdin: bytes, output: Output) -> None:
        """As `run`, but `output` gets what git prints as it comes."""
        self.git.stream(arguments, folder=self.folder, variables=self.variables, stdin=stdin, output=output)

    def lines(self, *arguments: str, stdin: bytes = b"") -> list[str]:
        """What git prints, without the line ends."""
        # Not splitlines(): names may hold U+2028 and the like, at which that splits too.
        printed = self.run(arguments, stdin=stdin).decode("utf-8", "replace")
        return printed.removesuffix("\n").split("\n") if printed else []

    def branches(self) -> list[str]:
        return self.lines("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")

    def has_commit(self, commit: str) -> bool:
        """Whether a commit, given by its full hash, is there with its files."""
        if not self.folder.is_dir():
            return False
        try:
            self.run(["cat-file", "-e", f"{commit}^{{tree}}"])
        except RepositoryError:
            return False
        return True

    def fetch(self, patience: float | None = None, time_limit: float | None = None) -> None:
        """Bring the mirror up to date, in FETCH_SECONDS where no other limit is given.

        Who gives one has somebody wait for an answer. Raises Unreachable (FetchTimeout where that limit was
        too short), RepositoryBusy as `locked` does, and where enough wait already.
        """
        if not self.repository:
            raise Unreachable(f"{self.project} has no repository, only an imported history.")
        with ExitStack() as stack:
            if time_limit is not None:
                stack.enter_context(waiting_thread(self.folder))
            self._fetch(["--prune"], REFSPECS, patience, time_limit)

    def fetch_commit(self, commit: str, patience: float | None = None) -> None:
        """Bring one commit, whether or not a branch leads to it, and what stands before it; as `fetch`."""
        self._fetch([], (f"+{commit}:{FETCHED}",), patience, None)

    def fetch_ref(self, ref: str, name: str, fork: str = "", patience: float | None = None) -> None:
        """Bring what one ref of the repository leads to, under a name that no other fetch touches.

        The head of a pull request is no branch of the repository: it comes only when it is asked for. `fork`
        is the address of another repository that has the ref. Raises as `fetch` does.
        """
        # Whoever proposes something has no say in what the repository's tags are.
        self._fetch(["--no-tags"], (f"+{ref}:{PROPOSED}{safe_name(name)}",), patience, None, fork)

    def remote_heads(self) -> RemoteHeads:
        """The branches that the repository has now; nothing is fetched. Raises Unreachable."""
        rows = [
            line.split("\t")
            for line in self._ask_remote("HEAD", "refs/heads/*", options=["--symref"])
            if line.count("\t") == 1
        ]
        prefix = "refs/heads/"
        tips = {
            name.removeprefix(prefix): sha
            for sha, name in rows
            if name.startswith(prefix) and FULL_HASH.fullmatch(sha)
        }
        named = [
            what.removeprefix("ref: ") for what, name in rows if name == "HEAD" and what.startswith("ref: ")
        ]
        return RemoteHeads(tips, named[0].removeprefix(prefix) if named else "")

    def fetch_tip(self, branch: str, time_limit: float) -> None:
        """Bring the newest commit of a branch, without what stands before it. Raises Unreachable."""
        refs = (f"+refs/heads/{branch}:refs/heads/{branch}",)
        try:
            self._fetch(["--depth=1", "--no-tags"], refs, None, time_limit)
        except Unreachable as error:
            # A server of files alone can't cut a history off.
            if "shallow" not in str(error):
                raise
            self._fetch(["--no-tags"], refs, None, time_limit)

    def remote_tip(self) -> str:
        """The newest commit of the branch, as the repository says now; as `remote_refs`.

        RepositoryError too where it has no such branch.
        """
        ref = f"refs/heads/{self.branch}"
        tip = self.remote_refs(ref).get(ref)
        if tip is None:
            raise RepositoryError(f"{hide_password(self.repository)} has no branch {self.branch!r}.")
        return tip

    def remote_refs(self, *patterns: str) -> dict[str, str]:
        """By branch or tag its commit, as the repository says now; nothing is fetched.

        Raises Unreachable where it can't be asked.
        """
        if not self.repository:
            raise RepositoryError(f"{self.project} has no repository, only an imported history.")
        rows = [line.split("\t") for line in self._ask_remote(*patterns)]
        # An annotated tag comes twice: itself, and after it, with a mark, the commit that it names.
        found = [row for row in rows if len(row) == 2 and FULL_HASH.fullmatch(row[0])]
        return {name.removesuffix("^{}"): sha for sha, name in found}

    def _ask_remote(self, *patterns: str, options: Sequence[str] = ()) -> list[str]:
        """The lines of `git ls-remote`. Raises Unreachable."""
        if not self._configuration.is_file():
            with self.locked():
                self._prepare()
        address, credentials = split_credentials(self.repository)
        try:
            printed = self.git.run(
                ["ls-remote", "--quiet", *options, "--", address, *patterns],
                folder=self.folder,
                variables=self._remote_variables(address, credentials),
                time_limit=REMOTE_SECONDS,
            )
        except RepositoryError as error:
            raise Unreachable(f"{hide_password(self.repository)} can't be asked: {error}") from error
        return printed.decode("utf-8", "replace").splitlines()

    def _fetch(
        self,
        options: Sequence[str],
        refs: Sequence[str],
        patience: float | None,
        time_limit: float | None,
        fork: str = "",
    ) -> None:
        repository = fork or self.repository
        with self.locked(patience):
            self._prepare()
            address, credentials = split_credentials(repository)
            try:
                self.git.run(
                    [*FETCH, *options, "--", address, *refs],
                    folder=self.folder,
                    variables=self._remote_variables(address, credentials),
                    time_limit=FETCH_SECONDS if time_limit is None else time_limit,
                )
            except RepositoryError as error:
                kind = FetchTimeout if isinstance(error, GitTimeout) else Unreachable
                raise kind(f"{hide_password(repository)} can't be fetched: {error}") from error

    def _remote_variables(self, address: str, credentials: str) -> dict[str, str]:
        """With which git asks an address: what it sends there, and by which protocols it may be led on."""
        called = address
        if protocol_variables(address):
            # After `insteadOf`, by which an account may have what is public from a cache beside it.
            printed = self.git.run(
                ["ls-remote", "--get-url", "--", address], folder=self.folder, variables=self.variables
            )
            called = printed.decode("utf-8", "replace").strip()
        return {
            **self.variables,
            **credential_variables(address, credentials),
            **protocol_variables(called),
        }

    def collect_garbage(self) -> None:
        """Pack what fetches have left, where that is much. Only where nothing is measured meanwhile.

        Nothing is deleted, and where another process has the mirror this is left to the next time.
        """
        with try_lock(self._lock_file) as descriptor, suppress(RepositoryError):
            if descriptor is not None and self.folder.is_dir():
                self.run(["gc", "--auto", "--quiet"], time_limit=FETCH_SECONDS)

    @contextmanager
    def locked(self, patience: float | None = None) -> Iterator[None]:
        """Alone with the mirror: whoever writes to it holds this.

        RepositoryBusy after `patience` seconds of waiting, LOCK_SECONDS where none are given.
        """
        patience = LOCK_SECONDS if patience is None else patience
        with ExitStack() as stack:
            try:
                stack.enter_context(hold_lock(self._lock_file, patience, self.git.stop))
            except TimeoutError:
                raise RepositoryBusy(f"The repository of {self.project} is being fetched already.") from None
            except OSError as error:
                raise RepositoryError(f"{self._lock_file} can't be opened: {error.strerror}.") from error
            yield

    @property
    def variables(self) -> dict[str, str]:
        # Named, so that git neither looks for a repository in the folders above nor asks who owns this one.
        return {"GIT_DIR": str(self.folder), "GIT_CONFIG_GLOBAL": str(self._configuration)}

    @property
    def _lock_file(self) -> Path:
        return self.folder.with_suffix(".lock")

    @property
    def _configuration(self) -> Path:
        return self.folder / "paceline-user-config"

    def _prepare(self) -> None:
        """The mirror as it must be before a fetch, whatever was interrupted or killed before."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            self._write_configuration()
        except OSError as error:
            raise RepositoryError(f"{self.folder} can't be made: {error.strerror}.") from error
        # Over an existing repository this only completes what is missing.
        self.run(["init", "--quiet", "--bare", "--template="])
        for name, value in SETTINGS.items():
            self.run(["config", name, value])
        if self.branch:
            # HEAD is what people mean by it: the newest commit of the project's branch.
            self.run(["symbolic-ref", "HEAD", f"refs/heads/{self.branch}"])

    def _remove_leftovers(self) -> None:
        for pattern in LEFTOVERS:
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        head = self.folder / "HEAD"
        if head.is_file() and not head.read_bytes().strip():
            head.unlink()
        # No fetch gets past a worktree without a commit. While the lock is held, nobody is making one.
        for record in self.folder.glob("worktrees/*"):
            head = record / "HEAD"
            if not head.is_file() or not head.read_bytes().strip(b"0\n"):
                shutil.rmtree(record)

    def _write_configuration(self) -> None:
        """The account's configuration, and trust in a local repository that belongs to another account.

        git refuses those, and `-c safe.directory` wouldn't reach the process that serves a local fetch. A
        repository that somebody registered here is one that is meant to be read.
        """
        variables = self.git.variables
        if given := variables.get("GIT_CONFIG_GLOBAL"):
            own = [str(Path(given).absolute())]
        elif home := variables.get("HOME"):
            settings = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
            own = [f"{settings}/git/config", f"{home}/.gitconfig"]
        else:
            own = []
        text = DEFAULTS + "".join(f"[include]\n\tpath = {_quote_value(path)}\n" for path in own)
        path = _local_path(self.repository)
        if path:
            for trusted in (path, f"{path.rstrip('/')}/.git"):
                text += f"[safe]\n\tdirectory = {_quote_value(trusted)}\n"
        # Renamed into place: who reads the mirror meanwhile reads the old one or the new one.
        draft = self.folder / "paceline-user-config.draft"
        draft.write_text(text)
        draft.rename(self._configuration)


def locate_mirror(
    home: Path, project: str, repository: str, branch: str = "", git: Git | None = None
) -> Mirror:
    """The mirror of a project's repository; `home` is the folder that site and workers of a host share."""
    # Keyed by the address too: what an earlier repository held isn't this one's.
    address = hashlib.sha256(split_credentials(repository)[0].encode()).hexdigest()[:10]
    folder = home / "mirrors" / f"{safe_name(project)}-{address}.git"
    return Mirror(folder.resolve(), project, repository, branch, git or Git())


def safe_name(name: str) -> str:
    """A name that is one path component, whatever stands in `name`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100] or "_"


def _local_path(repository: str) -> str:
    """The folder that an address names on this host; empty for any other address."""
    if repository.startswith("file://"):
        return unquote(urlsplit(repository).path)
    return repository if Path(repository).is_absolute() else ""


def _quote_value(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
