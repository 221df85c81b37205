from __future__ import annotations

from workers.host.logs import Log


def test_what_came_is_drained_once() -> None:
    log = Log()
    log.write(b"one\n")
    assert (log.drain(), log.drain()) == ("one\n", "")


def test_a_character_split_between_two_reads_stays_whole() -> None:
    log = Log()
    log.write("ä".encode()[:1])
    log.write("ä".encode()[1:])
    assert log.drain() == "ä"


def test_what_the_database_cannot_keep_is_replaced() -> None:
    log = Log()
    log.write(b"a\0b\xff")
    assert log.drain() == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


def test_of_a_long_log_the_head_streams_and_the_tail_is_kept() -> None:
    log = Log(head=10, tail=5)
    log.write(b"0123456789" * 3)
    assert log.drain() == "0123456789"
    assert log.finish() == "\n[15 characters left out]\n56789"


def test_memory_is_bounded_however_much_is_printed() -> None:
    log = Log(head=10, tail=5)
    for _ in range(1000):
        log.write(b"x" * 1000)
    assert len(log.finish()) < 100


def test_the_last_line_is_what_was_measured_not_what_we_said() -> None:
    log = Log()
    log.write(b"Traceback\nRuntimeError: boom\n\n")
    log.add_notice("the processes that were left behind are ended")
    assert log.last_line() == "RuntimeError: boom"


def test_a_log_without_lines_has_no_last_one() -> None:
    assert Log().last_line() == ""
