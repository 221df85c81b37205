"""Arithmetic and memory in pure Python, for a quarter of a second.

Prints that it is ready, waits for a line, prints the mean seconds of a step.
"""

from time import perf_counter

WARMUP, STEPS = 20, 100


def take_step() -> int:
    values = [number * 7 % 1009 for number in range(10_000)]
    return sum(values[::3])


print("ready", flush=True)
input()
for _ in range(WARMUP):
    take_step()
started = perf_counter()
for _ in range(STEPS):
    take_step()
print((perf_counter() - started) / STEPS)
