"""A measured process ends as Python would end it, without the time that tearing modules down takes."""

import pytest

from tests.harness.conftest import LOOP, Project

LEFT = {
    "an open file": "left = open({path!r}, 'w')\nleft.write('written')",
    "an open file of bytes": "left = open({path!r}, 'wb')\nleft.write(b'written')",
    "an exit handler": (
        "import atexit, pathlib\natexit.register(pathlib.Path({path!r}).write_text, 'written')"
    ),
    "a thread": (
        "import pathlib, threading, time\ndef write():\n  time.sleep(0.3)\n"
        "  pathlib.Path({path!r}).write_text('written')\nthreading.Thread(target=write).start()"
    ),
    "an executor": (
        "import concurrent.futures, pathlib, time\npool = concurrent.futures.ThreadPoolExecutor(1)\n"
        "pool.submit(time.sleep, 0.3)\npool.submit(pathlib.Path({path!r}).write_text, 'written')"
    ),
}


@pytest.mark.parametrize("left", LEFT)
def test_what_a_script_leaves_to_its_end_is_done(project: Project, left: str) -> None:
    path = project.folder / "left.txt"
    project.write(f"{LOOP}\n{LEFT[left].format(path=str(path))}", repetitions=1)
    assert project.call("run", "tiny", "--timed-only").returncode == 0
    assert path.read_text() == "written"


def test_the_last_words_are_kept(project: Project) -> None:
    project.write(f"{LOOP}\nimport atexit\natexit.register(print, 'last words')\nprint('words', end='')")
    assert "wordslast words" in project.call("run", "tiny", "--timed-only", "--repetitions", "1").stderr


def test_no_module_is_torn_down(project: Project) -> None:
    torn = "class Held:\n  def __del__(self): print('torn down')\nheld = Held()"
    project.write(f"{LOOP}\n{torn}")
    assert "torn down" not in project.call("run", "tiny", "--timed-only", "--repetitions", "1").stderr
