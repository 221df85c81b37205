"""When a request came in: a thread may take it long after, while all of them are busy."""

from __future__ import annotations

import socket
import struct
import sys
import time

from django.http import HttpRequest

# Of Linux's `struct tcp_info`, eight bytes and then numbers of four: milliseconds since the last data came.
LAST_DATA = struct.Struct("=I")
LAST_DATA_OFFSET = 8 + 4 * 11
# Python has no name for this clock. In its ticks the kernel counts: what came during one came at its start.
CLOCK_MONOTONIC_COARSE = 6
TICK_SECONDS = time.clock_getres(CLOCK_MONOTONIC_COARSE) if sys.platform == "linux" else 0.0


def arrival_time(request: HttpRequest) -> float:
    """Monotonic seconds at which the request had come; now, where nobody knows.

    From the kernel's own record of gunicorn's connection: up to a tick too late, and too early by as much as
    the tick itself was late. Behind a proxy it is when the proxy handed the request on.
    """
    now = time.monotonic()
    connection = request.META.get("gunicorn.socket")
    # Other systems have no such record, or another form of it.
    if sys.platform != "linux" or not isinstance(connection, socket.socket):
        return now
    try:
        tcp_info = connection.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_OFFSET + LAST_DATA.size
        )
        waited: int = LAST_DATA.unpack_from(tcp_info, LAST_DATA_OFFSET)[0]
    except (OSError, struct.error):
        # A socket of another kind.
        return now
    # Read after it: a tick in between makes the request later, not earlier.
    tick = time.clock_gettime(CLOCK_MONOTONIC_COARSE)
    return min(now, tick - waited / 1000 + TICK_SECONDS)
