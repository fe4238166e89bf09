"""How often something is measured: until the interval of the median is tight, or its time is over."""

import math
import statistics
import time

TIGHT = 0.03  # of the median
FEWEST, MOST = 5, 200  # samples
BATCH_NS = 200_000.0  # a sample lasts so long, for clocks and other processes disturb shorter ones


def interval(samples: list[float]) -> tuple[float, float]:
    """Of the median, at 95 %: order statistics by the normal approximation of the binomial distribution."""
    ordered = sorted(samples)
    half = 0.98 * math.sqrt(len(ordered))
    low = max(math.floor(len(ordered) / 2 - half), 0)
    high = min(math.ceil(len(ordered) / 2 + half), len(ordered) - 1)
    return ordered[low], ordered[high]


def is_tight(samples: list[float]) -> bool:
    low, high = interval(samples)
    return len(samples) >= FEWEST and high - low <= TIGHT * statistics.median(samples)


def median_of(sample, seconds: float, clock=time.monotonic) -> float | None:
    """The median of sample(times), the nanoseconds of one of so many; None if one is 0: then it cannot be had."""
    end = clock() + seconds
    first = sample(1)
    if first <= 0:
        return None
    times = max(1, min(1000, int(BATCH_NS / first)))
    samples: list[float] = [] if times > 1 else [first]
    while not samples or (len(samples) < MOST and not is_tight(samples) and (len(samples) < 3 or clock() < end)):
        if samples and clock() > end + seconds:
            break
        if (ns := sample(times)) <= 0:
            return None
        samples.append(ns)
    return statistics.median(samples)
