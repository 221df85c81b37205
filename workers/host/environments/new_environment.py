"""Makes an environment with pip in it, as `python -m venv` does, in less than half of the time.

`venv` starts pip out of its wheel, which is compiled anew for that, to install pip. Here the same wheels,
those that came with Python, are unpacked and byte-compiled. A box shows no file of the worker's: the
worker's interpreter is started there with this file's text. Standard library only.
"""

from __future__ import annotations

import compileall
import ensurepip
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

# The longest first line of a script that every Linux kernel reads, distlib's bound.
LONGEST_SHEBANG = 127
# What pip's own installer writes.
PIP_SCRIPT = """#!{interpreter}
# -*- coding: utf-8 -*-
import re
import sys
from pip._internal.cli.main import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""


def make_environment(folder: Path) -> None:
    """Make it; by ensurepip where Python keeps its wheels in another way than is known here."""
    wheels = find_wheels()
    venv.create(folder, symlinks=True, with_pip=not wheels)
    if not wheels:
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / f"python{version}" / "site-packages"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    script = PIP_SCRIPT.format(interpreter=script_interpreter(folder / "bin" / f"python{version}"))
    scripts = [folder / "bin" / name for name in ("pip", "pip3", f"pip{version}")]
    for path in scripts:
        path.write_text(script)
        path.chmod(0o755)
    for record in packages.glob("*.dist-info/RECORD"):
        installed = record.with_name("INSTALLER")
        installed.write_text("pip\n")
        # So that pip removes them with itself, as when it takes a newer one.
        beside = scripts if record.parent.name.startswith("pip-") else []
        rows = [f"{record.parent.name}/{installed.name}", *(f"../../../bin/{path.name}" for path in beside)]
        record.write_text(record.read_text() + "".join(f"{row},,\n" for row in rows))
    compileall.compile_dir(packages, quiet=2)


def find_wheels() -> list[Path]:
    """The wheels that ensurepip would install; none where they aren't found as expected."""
    names = ("pip", "setuptools") if sys.version_info < (3, 12) else ("pip",)
    # Distributions may keep them in a folder of their own, which then goes first.
    kept = sysconfig.get_config_var("WHEEL_PKG_DIR")
    bundled = Path(ensurepip.__file__).parent / "_bundled"
    for place in (Path(kept), bundled) if kept else (bundled,):
        found = [path for name in names for path in place.glob(f"{name}-*.whl")]
        if len(found) == len(names) and found[0].name.startswith(f"pip-{ensurepip.version()}-"):
            return found
    return []


def script_interpreter(python: Path) -> str:
    """What starts an interpreter, behind `#!`; a path that is no such word is handed on by the shell."""
    if len(f"#!{python}") <= LONGEST_SHEBANG and " " not in str(python):
        return str(python)
    return f"""/bin/sh\n'''exec' "{python}" "$0" "$@"\n' '''"""


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]))
