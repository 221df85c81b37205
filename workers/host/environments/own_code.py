"""The layer of one commit over what commits share: its own packages, and what its build commands make.

It is kept under a key that holds the commit's tree, so one commit's code never stands in for another's. What
its commands write beside the code is kept with it, and put into the checkout whenever that is measured.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paceline.manifest.environment_table import Environment, InstallTarget, parse_install

from workers.host.checkout.placing import place_copy
from workers.host.checkout.working_copy import WorkingCopy, is_file_or_link, working_copy
from workers.host.environments.build_runner import BUILD_FOLDER, WITHOUT_HISTORY, BuildRunner, BuildStep
from workers.host.environments.requirements import environment_key, read_requirements
from workers.host.environments.shared_environments import (
    COMPLETION_MARK,
    BuiltEnvironment,
    Environments,
    build_once,
    write_mark,
)
from workers.host.errors import BuildError, CheckoutError
from workers.host.folders import remove_tree

PRODUCTS = "products"
MOST_PRODUCTS = 100_000
# Run by the base's interpreter. A .pth file adds folders, and what the .pth files in them add; the scripts
# of the base start the layer's interpreter.
MAKE_LAYER = """
import pathlib, site, sys, venv
target, programs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.executable).parent
venv.create(target, symlinks=True, with_pip=False)
packages = target / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
shared = [folder for folder in site.getsitepackages() if pathlib.Path(folder).is_dir()]
lines = [f"import site; site.addsitedir({folder!r})\\n" for folder in shared]
(packages / "paceline-base.pth").write_text("".join(lines))
old, new = (b"#!" + bytes(folder) + b"/" for folder in (programs, target / "bin"))
for script in programs.iterdir() if sys.prefix != sys.base_prefix else ():
    copied = target / "bin" / script.name
    if script.is_file() and not copied.exists() and script.stat().st_size < 65536:
        text = script.read_bytes()
        if text.startswith(old):
            copied.write_bytes(text.replace(old, new, 1))
            copied.chmod(0o755)
"""


@dataclass(frozen=True)
class OwnCode:
    """What of a commit is put over a base: the checkout, and the hash of all that lies in it."""

    checkout: Path
    tree: str
    targets: tuple[InstallTarget, ...]
    build: tuple[str, ...]

    @property
    def is_in_place(self) -> bool:
        """Whether the layer is worth something beside this checkout alone, whose path it holds."""
        return bool(self.build) or any(target.is_editable for target in self.targets)

    def key(self, base: BuiltEnvironment) -> str:
        installed = [[target.folder, *target.extras, *target.options] for target in self.targets]
        return environment_key(
            {
                "base": base.base_key,
                "tree": self.tree,
                "install": json.dumps(installed),
                "build": json.dumps(self.build),
                "checkout": str(self.checkout) if self.is_in_place else "",
            }
        )


def build_code(
    checkout: Path, tree: str, environment: Environment | None, runner: BuildRunner
) -> BuiltEnvironment:
    """The interpreter for a commit's code, built as far as need be; BuildError says why not."""
    base = Environments(runner).base(checkout, environment)
    if environment is None:
        return base
    check_python_path(checkout, environment)
    local = () if environment.lock else read_requirements(checkout, environment.requirements).local
    targets = tuple(parse_install(word) for word in (*environment.install, *local))
    code = OwnCode(checkout, tree, targets, environment.build)
    if not targets and not environment.build:
        return base
    key = code.key(base)
    folder = runner.home / "environments" / key[:32]
    build = partial(build_layer, folder, code, base, runner)
    build_once(folder, "building the commit's own code", runner, build, "the commit's own code was built")
    place_products(folder, checkout)
    return BuiltEnvironment(folder / "bin" / "python", (folder, *base.folders), base.base_key)


def check_python_path(checkout: Path, environment: Environment) -> None:
    """BuildError where a folder of it isn't one of the commit's."""
    for name in environment.python_path:
        folder = (checkout / name).resolve()
        if not folder.is_relative_to(checkout.resolve()) or not folder.is_dir():
            raise BuildError(f"The manifest's python_path names {name!r}, which is no folder of this commit.")


def build_layer(folder: Path, code: OwnCode, base: BuiltEnvironment, runner: BuildRunner) -> None:
    """Make the layer anew, and mark it once it is complete."""
    runner.make_folders(BuildStep(folder, code.checkout))
    with working_copy(code.checkout, folder.with_suffix(".checkout"), runner.box) as copy:
        programs = (folder / "bin", base.python.parent)
        step = BuildStep(folder, code.checkout, copy.copy, base.folders, programs, WITHOUT_HISTORY)
        runner.execute([str(base.python), "-I", "-c", MAKE_LAYER, str(folder)], step)
        for target in code.targets:
            # What it depends on is in the base.
            words = ["--use-pep517", "--no-deps", "--no-warn-script-location", *target.pip_words()]
            runner.run_pip(folder / "bin" / "python", words, step)
        for command in code.build:
            runner.run_shell(command, step)
        products = keep_products(folder, copy) if code.is_in_place else []
    remove_tree(folder / BUILD_FOLDER)
    mark = {"tree": code.tree, "base": base.base_key, "products": products, "built_at": time.time()}
    write_mark(folder / COMPLETION_MARK, json.dumps(mark))


def keep_products(folder: Path, copy: WorkingCopy) -> list[str]:
    """Keep what the commands have written beside the code; its paths."""
    written = [name for name in copy.written() if is_file_or_link(copy.folder / name)]
    if len(written) > MOST_PRODUCTS:
        raise BuildError(f"The build has written more than {MOST_PRODUCTS} files beside the code.")
    kept = folder / PRODUCTS
    remove_tree(kept)
    # A command may have put a link there.
    kept.unlink(missing_ok=True)
    for name in written:
        target = kept / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy.folder / name, target, follow_symlinks=False)
    return written


def place_products(folder: Path, checkout: Path) -> None:
    """Put what the layer's commands have written beside the code, in this checkout."""
    try:
        for name in json.loads((folder / COMPLETION_MARK).read_text())["products"]:
            place_copy(folder / PRODUCTS / name, checkout, name, "The built file")
    except CheckoutError as error:
        raise BuildError(str(error)) from error
