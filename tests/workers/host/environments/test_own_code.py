"""A commit's own packages: installed over what commits share, and never in the place of another commit's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import paceline
import pytest
from paceline.manifest.environment_table import Environment, parse_install

from tests.workers.host.boxes import MIB, small_box
from tests.workers.host.wheels import build_wheel
from workers.host.box.box import NO_BOX, Box, Sandbox
from workers.host.environments.build_runner import BuildRunner
from workers.host.environments.own_code import build_code
from workers.host.environments.own_dependencies import (
    choose_requirement,
    declared_dependencies,
    expand_extra,
    is_requirement,
)
from workers.host.environments.shared_environments import BuiltEnvironment, list_environments
from workers.host.errors import BuildError
from workers.host.logs import Log

EXTENSION = """
#include <Python.h>
static PyObject *value(PyObject *self, PyObject *unused) { return PyLong_FromLong(%d); }
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "", -1, methods};
PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
"""
SETUP = """
from setuptools import Extension, find_packages, setup
setup(
    name="learner", version="1", package_dir={"": "src"}, packages=find_packages("src"),
    ext_modules=[Extension("learner._native", ["native.c"])], install_requires=%r,
)
"""
# A backend of its own, so that its build needs nothing over a network. Its version is what git would tell.
DECLARED = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "learner"
dynamic = ["version"]
dependencies = ["tiny"]
"""
BACKEND = """
import os, pathlib, zipfile

version = os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]

def get_requires_for_build_editable(settings=None): return []

def build_editable(folder, settings=None, metadata=None):
    name, info = f"learner-{version}-py3-none-any.whl", f"learner-{version}.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("learner.pth", str(pathlib.Path("src").absolute()))
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: learner\\nVersion: {version}\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
# One that builds the extension without setuptools, whose start takes most of a short build's time.
NATIVE_BACKEND = """
import os, pathlib, subprocess, sysconfig, zipfile

def build_wheel(folder, settings=None, metadata=None):
    name, info = "learner-1-py3-none-any.whl", "learner-1.dist-info"
    library = "_native" + sysconfig.get_config_var("EXT_SUFFIX")
    include = "-I" + sysconfig.get_path("include")
    subprocess.run(["cc", "-shared", "-fPIC", include, "native.c", "-o", library], check=True)
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("src/learner/__init__.py", "learner/__init__.py")
        wheel.write(library, f"learner/{library}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: learner\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
# Whether counting takes what is imported from the shared environment for a part of it.
RECORDED = f"""
import sys, tiny
sys.path.append({str(Path(paceline.__file__).parents[1])!r})
from paceline.counting.read_files import package_folders, recorded_files
print(any(b"tiny.py" in recorded_files(folder, b"tiny.py") for folder in package_folders()))
"""
SHOW = "import learner; from learner._native import value; print(learner.VALUE, value())"


def write_commit(folder: Path, value: int, requires: tuple[str, ...] = ()) -> Path:
    """A checkout of a package with a src layout and an extension, both of which tell the value."""
    package = folder / "src" / "learner"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"VALUE = {value}\n")
    (folder / "native.c").write_text(EXTENSION % value)
    (folder / "setup.py").write_text(SETUP % (list(requires),))
    return folder


def small_runner(home: Path, box: Box = NO_BOX, **host_variables: str) -> BuildRunner:
    return BuildRunner(home, Log(), host_variables={"PIP_NO_INDEX": "1", **host_variables}, box=box)


def printed_by(built: BuiltEnvironment, code: str, folder: Path) -> str:
    return subprocess.check_output([built.python, "-c", code], text=True, cwd=folder).strip()


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Box:
    sandbox = Sandbox(network="none", build_disk=400 * MIB)
    return small_box("bubblewrap", tmp_path_factory.mktemp("box"), sandbox)


def test_commits_side_by_side_have_their_own_code(tmp_path: Path) -> None:
    box = small_box("namespaces", tmp_path / "box", Sandbox(network="none", build_disk=400 * MIB))
    runner = small_runner(tmp_path / "home", box)
    environment = Environment(install=("--no-build-isolation .",))
    checkouts = [write_commit(tmp_path / f"checkout-{value}", value) for value in (1, 2)]
    for checkout in checkouts:
        (checkout / "pyproject.toml").write_text(DECLARED.replace('["tiny"]', "[]"))
        (checkout / "backend.py").write_text(NATIVE_BACKEND)
    built = [build_code(folder, folder.name, environment, runner) for folder in checkouts]
    assert [printed_by(each, SHOW, tmp_path) for each in built] == ["1 1", "2 2"]
    # The worker's own packages lie below it, where the commit requires none.
    assert printed_by(built[0], "import psutil; print(psutil.__name__)", tmp_path) == "psutil"
    # Not in place: another checkout of the same tree may use it, without anything built anew.
    again = small_runner(tmp_path / "home", box)
    assert build_code(tmp_path / "checkout-2", "checkout-1", environment, again) == built[0]
    assert again.log.finish() == ""


def test_what_is_built_in_place_comes_back(tmp_path: Path, box: Box) -> None:
    checkout = write_commit(tmp_path / "checkout", 3)
    environment = Environment(
        install=("-e --no-build-isolation .",), build=('python -c \'open("made.txt", "w").write("3")\'',)
    )
    built = build_code(checkout, "tree", environment, small_runner(tmp_path / "home", box))
    assert printed_by(built, SHOW, tmp_path) == "3 3"
    assert (checkout / "made.txt").read_text() == "3"
    # As the next checkout of the same commit begins.
    for left in (checkout / "made.txt", *checkout.glob("src/learner/*.so")):
        left.unlink()
    again = small_runner(tmp_path / "home", box)
    assert build_code(checkout, "tree", environment, again) == built
    assert (printed_by(built, SHOW, tmp_path), again.log.finish()) == ("3 3", "")
    # In another folder the links of an editable package would lead to this one.
    other = write_commit(tmp_path / "other", 3)
    (other / "pyproject.toml").write_text(DECLARED.replace('["tiny"]', "[]"))
    (other / "backend.py").write_text(BACKEND)
    assert build_code(other, "tree", environment, small_runner(tmp_path / "home", box)) != built


def test_commits_with_the_same_dependencies_share_them(tmp_path: Path) -> None:
    build_wheel(tmp_path / "wheels", "tiny", "SIZE = 5")
    runner = small_runner(tmp_path / "home", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    environment = Environment(("requirements.txt",))
    built = []
    for value in (1, 2):
        checkout = write_commit(tmp_path / f"checkout-{value}", value)
        (checkout / "pyproject.toml").write_text(DECLARED)
        (checkout / "backend.py").write_text(BACKEND)
        # A line of it is the commit's own package: it is no part of what is shared.
        (checkout / "requirements.txt").write_text("--prefer-binary\n-e .\n")
        built.append(build_code(checkout, f"tree {value}", environment, runner))
    shown = [
        printed_by(each, "import learner, tiny; print(learner.VALUE, tiny.SIZE)", tmp_path) for each in built
    ]
    assert shown == ["1 5", "2 5"]
    assert built[0].base_key == built[1].base_key != ""
    assert printed_by(built[0], RECORDED, tmp_path) == "True"
    assert len(list_environments(tmp_path / "home")) == 3


def test_a_version_that_git_would_tell_is_the_same_for_all(tmp_path: Path, box: Box) -> None:
    checkout = write_commit(tmp_path / "checkout", 1)
    (checkout / "pyproject.toml").write_text(DECLARED.replace('["tiny"]', "[]"))
    (checkout / "backend.py").write_text(BACKEND)
    built = build_code(checkout, "tree", Environment(install=("-e .",)), small_runner(tmp_path / "home", box))
    code = "import importlib.metadata as m; print(m.version('learner'))"
    assert printed_by(built, code, tmp_path) == "0.0.0"


def test_the_build_tells_what_a_setup_requires(tmp_path: Path) -> None:
    build_wheel(tmp_path / "wheels", "tiny", "SIZE = 6")
    runner = small_runner(tmp_path / "home", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    checkout = write_commit(tmp_path / "checkout", 1, ("tiny==2",))
    with pytest.raises(BuildError, match="No matching distribution found for tiny==2"):
        build_code(checkout, "tree", Environment(install=("--no-build-isolation .",)), runner)
    # What was looked at leaves nothing beside the code.
    assert sorted(path.name for path in checkout.iterdir()) == ["native.c", "setup.py", "src"]


def test_what_a_failed_command_said_is_told(tmp_path: Path) -> None:
    checkout = write_commit(tmp_path / "checkout", 1)
    environment = Environment(build=("echo no compiler; exit 3",))
    with pytest.raises(
        BuildError, match=r"can't be built: 'echo no compiler; exit 3' ended with exit status 3"
    ):
        build_code(checkout, "tree", environment, small_runner(tmp_path / "home"))
    assert list_environments(tmp_path / "home") == []
    with pytest.raises(BuildError, match="python_path names 'lib', which is no folder of this commit"):
        build_code(checkout, "tree", Environment(python_path=("lib",)), small_runner(tmp_path / "home"))


def test_declared_dependencies_need_no_build(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "my_pkg"\ndependencies = ["numpy"]\n[project.optional-dependencies]\n'
        'train = ["torch"]\nall = ["My-Pkg[train, all]", "rich"]\n'
    )
    assert declared_dependencies(tmp_path, parse_install(".[all]")) == ["numpy", "torch", "rich"]
    assert declared_dependencies(tmp_path, parse_install("-e .")) == ["numpy"]
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\ndynamic = ["dependencies"]\n')
    assert declared_dependencies(tmp_path, parse_install(".")) is None
    assert list(expand_extra("none", {}, "a")) == []
    assert choose_requirement('torch; extra == "train"', ("Train",)) == "torch; python_version > '0'"
    assert choose_requirement('torch; extra == "train"', ()) == ""


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 2000) + " = 1",
        "a = " + "[" * 5000,
        "[project]\ndependencies = 5",
        "[project]\ndependencies = [1]",
        "[project]\ndynamic = 7",
        "[project]\noptional-dependencies = []",
        "[project.optional-dependencies]\nall = 3",
        '[project]\ndependencies = ["./vendored"]',
        '[project]\ndependencies = ["vendored/lib"]',
        '[project]\ndependencies = ["lib-1.0-py3-none-any.whl"]',
        '[project]\ndependencies = ["-r other.txt"]',
        '[project]\ndependencies = ["--find-links wheels"]',
    ],
)
def test_what_is_no_dependency_is_told_of_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(BuildError, match=r"pyproject\.toml"):
        declared_dependencies(tmp_path, parse_install(".[all]"))


def test_extras_that_name_each_other_are_read_once(tmp_path: Path) -> None:
    """Each time anew, forty of them would be read a million million times."""
    rows = [f'a{n} = ["p[a{n + 1},b{n + 1}]"]\nb{n} = ["p[a{n + 1},b{n + 1}]"]' for n in range(40)]
    extras = "\n".join([*rows, 'a40 = ["numpy"]', 'b40 = ["torch", "p[a0]"]'])
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "p"\n[project.optional-dependencies]\n{extras}\n'
    )
    assert declared_dependencies(tmp_path, parse_install(".[a0]")) == ["numpy", "torch"]


@pytest.mark.parametrize(
    "row",
    ["numpy", "numpy>=1", "a.b (>=1)", "torch ; extra", "x[y]~=2", "x @ https://host/x.whl", "x!=1"],
)
def test_a_requirement_is_one(row: str) -> None:
    assert is_requirement(row)


@pytest.mark.parametrize("boxed", [True, False])
def test_what_commands_leave_is_not_followed(tmp_path: Path, box: Box, boxed: bool) -> None:
    (secret := tmp_path / "secret").write_text("of the host")
    checkout = write_commit(tmp_path / "checkout", 1)
    commands = (
        f"ln -s {secret} leads.txt",
        f"mkdir out && ln -s {tmp_path} out/all",
        "mkfifo pipe",
        "rm setup.py; mkfifo setup.py",
    )
    runner = small_runner(tmp_path / "home", box if boxed else NO_BOX)
    built = build_code(checkout, "tree", Environment(build=commands), runner)
    kept = built.folders[0] / "products"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == ["leads.txt", "out", "out/all"]
    assert (kept / "leads.txt").is_symlink()
    assert (kept / "out" / "all").is_symlink()
