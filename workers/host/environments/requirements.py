"""The requirements of a commit: their files, what stands in these, and the key of what they make."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

from paceline.manifest.environment_table import install_problem, parse_install
from paceline.manifest.preparation import content_digest, read_file_states

from workers.host.checkout.worktree import read_text_inside
from workers.host.errors import BuildError, CheckoutError

INCLUDES = ("-r", "--requirement", "-c", "--constraint")
# Options that say where packages are found; each may name a folder of the checkout. Of the first two pip sees
# the packages and pages in the folder itself, of an index all that lies below it.
FLAT_SOURCES = ("-f", "--find-links")
SOURCES = (*FLAT_SOURCES, "-i", "--index-url", "--extra-index-url")
PACKAGES = (
    *(".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz"),
    *(".tar.lz", ".tlz", ".tar.lzma", ".html", ".htm"),
)
MOST_FILES = 50
# What pip fetches over the network, also behind `name @`.
ADDRESS = re.compile(r"(?:[\w.-]+(?:\[[^\]]*\])?@)?(?:https?|(?:git|hg|svn|bzr)\+\w+)://", re.IGNORECASE)
FILE_ADDRESS = re.compile(r"\bfile:", re.IGNORECASE)


PACKAGE_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


@dataclass(frozen=True)
class Requirements:
    """Requirements files: the manifest's `names`, and the `texts` of them and of all that they include.

    `local` are the commit's own packages that stood in them, as the manifest's `install` names such; their
    lines are taken out of the texts. `sources` are the folders and files of the checkout in which packages
    are found, each with a hash of what it holds.
    """

    names: tuple[str, ...]
    texts: dict[str, str]
    local: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def key(self) -> str:
        """Names the environment of all that is required."""
        return environment_key({**self.texts, **self.sources})


def read_requirements(checkout: Path, names: Sequence[str]) -> Requirements:
    """The files that the manifest names and all that they include, in order."""
    texts: dict[str, str] = {}
    local: list[str] = []
    sources: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in texts:
            continue
        try:
            text = read_text_inside(checkout, name, "The requirements file")
        except CheckoutError as error:
            raise BuildError(str(error)) from error
        included, texts[name] = part_requirements(checkout, name, text, local)
        sources.update(hash_sources(checkout, name, text))
        if len(texts) > MOST_FILES:
            raise BuildError(f"The requirements include more than {MOST_FILES} files.")
        waiting.extend(included)
    return Requirements(tuple(names), texts, tuple(dict.fromkeys(local)), sources)


def hash_sources(checkout: Path, name: str, text: str) -> Iterator[tuple[str, str]]:
    """The checkout's own folders and files in which packages are found, each with a hash of its content.

    One commit's wheel must not stand in for another's of the same version. pip looks for them below the
    requirements file first.
    """
    inside = checkout.resolve()
    read: set[tuple[bool, Path]] = set()
    for option, value in dict.fromkeys(read_options(text)):
        if option not in SOURCES or ADDRESS.match(value):
            continue
        for place in (checkout / PurePosixPath(name).parent / value, checkout / value):
            if os.path.exists(place) and (found := place.resolve()).is_relative_to(inside):  # noqa: PTH110 - raises nothing
                # Once: it may be named ten thousand times, each time spelled in another way.
                if (source := (option in FLAT_SOURCES, found)) not in read:
                    read.add(source)
                    yield describe_source(checkout, place, option)
                break


def describe_source(checkout: Path, place: Path, option: str) -> tuple[str, str]:
    """What an option that names this place lets pip find, and a hash of its content."""
    folder = place if place.is_dir() else place.parent
    files = package_files(place, option) if place.is_dir() else [place.name]
    kind = "packages in" if option in FLAT_SOURCES else "index below"
    return f"{kind} {os.path.relpath(place, checkout)}", content_digest(folder, files)


def package_files(folder: Path, option: str) -> list[str]:
    """The files in which pip looks for packages where this option names the folder."""
    if option in FLAT_SOURCES:
        return [path.name for path in folder.iterdir() if path.name.endswith(PACKAGES) and path.is_file()]
    return list(read_file_states(folder))


def read_options(text: str) -> Iterator[tuple[str, str]]:
    """The options of a requirements file, each with its value; a line may hold several."""
    for _, line in joined_lines(text):
        words = split_words(line)
        for index, word in enumerate(words):
            if word.startswith("-"):
                yield split_option(words[index : index + 2])


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines as pip reads them, each with the number of the first one that it is of: one that ends with a
    backslash goes on in the next."""
    first, begun = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if begun else number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            begun += line.strip("\\") or " "
        else:
            yield first, begun + (" " if is_comment else "") + line
            begun = ""
    if begun:
        yield first, begun


def split_option(words: Sequence[str]) -> tuple[str, str]:
    """An option and its value, which may stand in one word; both empty where the words are none."""
    if not words or not words[0].startswith("-"):
        return "", ""
    first = words[0]
    if first.startswith("--") and "=" in first:
        option, _, value = first.partition("=")
        return option, value
    if not first.startswith("--") and len(first) > 2:
        return first[:2], first[2:]
    return first, words[1] if len(words) > 1 else ""


def part_requirements(checkout: Path, name: str, text: str, local: list[str]) -> tuple[list[str], str]:
    """The files that a requirements file includes, and its text without the commit's own packages.

    These are added to `local`. Both are relative to the checkout.
    """
    included: list[str] = []
    lines = text.splitlines(keepends=True)
    joined = list(joined_lines(text))
    left_out: set[int] = set()
    for (number, line), (following, _) in pairwise([*joined, (len(lines) + 1, "")]):
        words = split_words(line)
        if words and words[0] in INCLUDES and len(words) > 1:
            included.append(str(PurePosixPath(name).parent / words[1]))
        elif words and is_local(checkout, words):
            # A cached environment that holds code of one commit would measure it for every other.
            if not is_own_package(checkout, words):
                raise BuildError(
                    f"{name} line {number} installs a folder or file: an environment kept for other commits "
                    "can't hold it. Where it is a package of the commit, name it in the manifest's install."
                )
            local.append(shlex.join(words))
            left_out.update(range(number, following))
    kept = [line for number, line in enumerate(lines, start=1) if number not in left_out]
    return included, "".join(kept) if left_out else text


def is_own_package(checkout: Path, words: Sequence[str]) -> bool:
    """Whether the words name a package of the commit, as the manifest's `install` may."""
    word = shlex.join(words)
    if install_problem(word):
        return False
    folder = checkout / parse_install(word).folder
    # A name that is too long for a path, or links that lead in a circle, raise nothing here.
    real = Path(os.path.realpath(folder))
    is_inside = real.is_relative_to(checkout.resolve())
    return is_inside and any(os.path.isfile(real / name) for name in PACKAGE_FILES)  # noqa: PTH113


def is_local(checkout: Path, words: Sequence[str]) -> bool:
    """Whether pip would install this from a folder or file, or leave a link to its source behind."""
    if any(word.startswith(("-e", "--editable")) or FILE_ADDRESS.search(word) for word in words):
        return True
    first = words[0]
    if first.startswith("-") or ADDRESS.match(first):
        return False
    # A folder needs a slash or a dot to be one for pip, an archive does not: `name` is a package's name.
    bare = re.split(r"[\[;]", first)[0]
    # What is too long for a file's name is none, and raises nothing.
    return first.startswith(".") or "/" in first or os.path.isfile(checkout / bare)  # noqa: PTH113


def split_words(line: str) -> list[str]:
    """The words before a comment; `--requirement=x` and `-rx` count as two."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return line.split()
    option, value = split_option(words)
    return [option, value] if option in INCLUDES and value else words


def environment_key(texts: dict[str, str]) -> str:
    """Names an environment by what it is made of: the texts and the interpreter."""
    digest = hashlib.sha256()
    for part in (
        platform.python_version(),
        platform.machine(),
        *(text for item in texts.items() for text in item),
    ):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()
