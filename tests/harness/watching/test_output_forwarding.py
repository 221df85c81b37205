import io
from pathlib import Path

import pytest
from paceline.watching import output_forwarding
from paceline.watching.measurement_errors import MeasurementError
from paceline.watching.output_forwarding import OutputForwarder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "output"
    path.write_bytes(b"")
    return path


def append_bytes(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lines_are_passed_on_when_they_are_whole(output: Path) -> None:
    to = io.StringIO()
    with OutputForwarder(output, to) as follower:
        append_bytes(output, b"one\ntw")
        follower.forward()
        assert to.getvalue() == "one\n"
        append_bytes(output, b"o\nthree")
        follower.forward()
        assert to.getvalue() == "one\ntwo\n"
    assert to.getvalue() == "one\ntwo\nthree\n"


class ClosedTerminal(io.StringIO):
    """Whoever read it is gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_nobody_who_reads_costs_nothing(output: Path) -> None:
    with OutputForwarder(output, ClosedTerminal()) as follower:
        append_bytes(output, b"one\n")
        assert follower.forward()


def test_what_is_no_text_is_replaced(output: Path) -> None:
    to = io.StringIO()
    with OutputForwarder(output, to):
        append_bytes(output, "ü".encode() + b"\xff\n")
    assert to.getvalue() == "ü\N{REPLACEMENT CHARACTER}\n"


def test_a_flood_is_cut(output: Path) -> None:
    to = io.StringIO()
    with OutputForwarder(output, to):
        append_bytes(output, b"x" * 50 + b"\n" * output_forwarding.OUTPUT_SHOWN_LIMIT * 2)
    assert to.getvalue().endswith("(it wrote more, which is not shown)\n")
    assert len(to.getvalue()) < output_forwarding.OUTPUT_SHOWN_LIMIT + output_forwarding.READ_SIZE + 100


@pytest.mark.parametrize(("size", "shown"), [(10, True), (output_forwarding.OUTPUT_SHOWN_LIMIT + 1, False)])
def test_an_error_knows_whether_its_output_was_shown(output: Path, size: int, shown: bool) -> None:
    append_bytes(output, b"x" * size)
    with pytest.raises(MeasurementError) as caught, OutputForwarder(output, io.StringIO()):
        raise MeasurementError("it broke", "tail")
    assert (caught.value.shown, caught.value.output) == (shown, "tail")
