"""Links between replicas, and the router as a server: both take one thing after the other."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Links:
    """KV moves from replica to replica. A replica's link serves one transfer at a time each way."""

    out_free_at: dict[str, float] = field(default_factory=dict)
    in_free_at: dict[str, float] = field(default_factory=dict)
    bytes_moved: int = 0

    def move(
        self,
        source: str,
        destination: str,
        *,
        size: float,
        bytes_per_second: float,
        setup_seconds: float,
        now: float,
    ) -> float:
        """When a transfer that is asked for now is over."""
        begins = max(now, self.out_free_at.get(source, 0.0), self.in_free_at.get(destination, 0.0))
        ends = begins + setup_seconds + size / bytes_per_second
        self.out_free_at[source] = self.in_free_at[destination] = ends
        self.bytes_moved += round(size)
        return ends


@dataclass(slots=True)
class Station:
    """A router of finite speed: `servers` processes, one queue; its relay of open streams delays
    what comes new (it takes turns with them) without taking its place in the queue.
    """

    seconds_per_request: float = 0.0
    """CPU time of one request, its relay included."""
    servers: int = 1
    seconds_per_open: float = 0.0
    """Delay of a new request for each that is open."""
    _free_at: list[float] = field(default_factory=list)

    def passes(self, now: float, open_requests: int = 0) -> float:
        """When a request that comes now can be decided, if so many are open."""
        delay = self.seconds_per_open * open_requests / self.servers
        if self.seconds_per_request <= 0:
            return now + delay
        if not self._free_at:
            self._free_at = [0.0] * self.servers
        first = min(range(self.servers), key=self._free_at.__getitem__)
        self._free_at[first] = max(now, self._free_at[first]) + self.seconds_per_request
        return self._free_at[first] + delay
