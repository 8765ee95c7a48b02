"""Counters and histograms for what each request counts: one addition, no lock, one thread.

The client library's own take microseconds per step, ten times a request. It still makes the page:
these families are collectors of its registry.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Count:
    """One labelled series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Grow."""
        self.value += amount


class Counts(Collector):
    """A counter with labels, in the order of `names`."""

    def __init__(
        self, name: str, text: str, names: Sequence[str], *, registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._names = name, text, names
        self._series: dict[tuple[str, ...], Count] = {}
        registry.register(self)

    def of(self, *labels: str) -> Count:
        """The series of these labels."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Count()
        return series

    def keep(self, is_kept: Callable[[tuple[str, ...]], bool]) -> None:
        """Drop the series of other labels, so that what comes and goes does not add up."""
        self._series = {
            labels: series for labels, series in self._series.items() if is_kept(labels)
        }

    def collect(self) -> Iterator[CounterMetricFamily]:
        """What the page shows."""
        family = CounterMetricFamily(self._name, self._text, labels=self._names)
        for labels, series in self._series.items():
            family.add_metric(labels, series.value)
        yield family


class Spread:
    """One labelled series of a histogram."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Per bucket, not added up."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value into its bucket; bounds belong to the bucket below them."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class Spreads(Collector):
    """A histogram with labels, in the order of `names`; `bounds` grow."""

    def __init__(
        self,
        name: str,
        text: str,
        names: Sequence[str],
        *,
        bounds: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name, self._text, self._names, self._bounds = name, text, names, bounds
        self._limits = [*map(repr, bounds), "+Inf"]
        self._series: dict[tuple[str, ...], Spread] = {}
        registry.register(self)

    def of(self, *labels: str) -> Spread:
        """The series of these labels."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Spread(self._bounds)
        return series

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """What the page shows: buckets added up."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._names)
        for labels, series in self._series.items():
            buckets, below = [], 0
            for limit, count in zip(self._limits, series.counts, strict=True):
                below += count
                buckets.append((limit, float(below)))
            family.add_metric(labels, buckets, series.total)
        yield family
