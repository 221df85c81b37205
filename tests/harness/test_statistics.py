import random

import pytest
from paceline import statistics


def test_quantiles_are_interpolated() -> None:
    assert statistics.quantile_summary([4, 1, 3, 2]) == {
        "p50": 2.5,
        "p90": pytest.approx(3.7),
        "p99": pytest.approx(3.97),
    }


def test_the_interval_of_few_values_is_their_range() -> None:
    assert statistics.median_interval([3, 1, 2]) == (1, 3)
    assert statistics.median_interval([1, 2]) is None


def test_the_interval_holds_the_median_as_often_as_promised() -> None:
    draw = random.Random(1)  # noqa: S311  # a fixed seed is the point
    held = 0
    for _ in range(2000):
        low, high = statistics.median_interval([draw.gauss(0, 1) for _ in range(9)]) or (0, 0)
        held += low <= 0 <= high
    assert 0.94 < held / 2000 < 0.99


def test_a_slope_ignores_an_outlier() -> None:
    points = [(float(x), 5.0 * x) for x in range(20)]
    points[7] = (7.0, 1e6)
    found = statistics.theil_sen_slope(points)
    assert found is not None
    assert found[0] == pytest.approx(5.0)
    assert found[1] <= 5.0 <= found[2]


def test_few_points_have_no_slope() -> None:
    assert statistics.theil_sen_slope([(1.0, 1.0)] * 7) is None
    assert statistics.theil_sen_slope([(1.0, 1.0)] * 9) is None


def test_a_histogram_holds_every_value() -> None:
    values = [0.001 * 1.1**k for k in range(100)]
    found = statistics.histogram(values)
    assert sum(found["counts"]) == 100
    assert len(found["edges"]) == len(found["counts"]) + 1
    assert (found["edges"][0], found["edges"][-1]) == (min(values), max(values))


@pytest.mark.parametrize("values", [[0.5] * 7, [0.0, 0.0], [0.0, 1.0]])
def test_a_histogram_of_nearly_nothing(values: list[float]) -> None:
    assert sum(statistics.histogram(values)["counts"]) == len(values)


def test_thinning_keeps_the_mean() -> None:
    thinned = statistics.thin_values([1.0, 3.0, 5.0, 7.0, 9.0], most=3)
    assert thinned == {"every": 2, "values": [2.0, 6.0, 9.0]}


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (3, 5), (5, 5)])
def test_the_mann_whitney_distribution_is_whole(n: int, m: int) -> None:
    import math

    ways = statistics._mann_whitney(n, m)
    assert sum(ways) == math.comb(n + m, n)
    assert ways == ways[::-1]
    assert ways[0] == 1


def test_a_ratio_and_its_interval() -> None:
    before, after = [1.0, 1.02, 0.98, 1.01, 0.99], [2.0, 2.04, 1.96, 2.02, 1.98]
    middle, low, high, confidence = statistics.ratio_interval(before, after)
    assert middle == pytest.approx(2.0)
    assert 1.9 < low < 2.0 < high < 2.1
    assert confidence >= 0.95


def test_three_against_three_is_the_whole_range() -> None:
    _, low, high, confidence = statistics.ratio_interval([1, 2, 4], [1, 2, 4])
    assert (low, high) == (0.25, 4)
    assert confidence == pytest.approx(0.9)


def test_equal_samples_differ_as_rarely_as_promised() -> None:
    draw = random.Random(2)  # noqa: S311  # a fixed seed is the point
    false = 0
    for _ in range(1000):
        before, after = ([draw.gauss(10, 1) for _ in range(5)] for _ in range(2))
        _, low, high, _ = statistics.ratio_interval(before, after)
        false += not low <= 1 <= high
    assert false / 1000 < 0.06
