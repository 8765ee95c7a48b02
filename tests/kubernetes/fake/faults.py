"""What can go wrong between a caller and the API server, on a test's demand."""

import re
import threading
from dataclasses import dataclass, field

from tests.kubernetes.fake.errors import ApiError


@dataclass
class Fault:
    """One disturbance of the requests whose method and path fit.

    `seconds` of delay come first; then `error` is answered, or nothing at all (`silent`), or the
    request goes on. `times` counts down; None: until it is cleared.
    """

    methods: frozenset[str] = frozenset()
    path: str = ""
    times: int | None = None
    seconds: float = 0.0
    silent: bool = False
    error: ApiError | None = None
    hits: int = 0

    def fits(self, method: str, path: str) -> bool:
        """Whether this request is disturbed."""
        spent = self.times is not None and self.hits >= self.times
        known = not self.methods or method in self.methods
        return not spent and known and re.search(self.path, path) is not None


WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
NO_REVIEW = r"^(?!/apis/authorization).*"


@dataclass
class Faults:
    """The disturbances in force; `path` is a regular expression over the path with its query."""

    active: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)

    def add(self, fault: Fault) -> Fault:
        """Put a disturbance in force."""
        with self._lock:
            self.active.append(fault)
        return fault

    def clear(self) -> None:
        """End all disturbances; requests that hang are let go (their connection closes)."""
        with self._lock:
            self.active.clear()
            self.released.set()
            self.released = threading.Event()

    def take(self, method: str, path: str) -> list[Fault]:
        """The disturbances of one request, counted as used."""
        with self._lock:
            found = [fault for fault in self.active if fault.fits(method, path)]
            for fault in found:
                fault.hits += 1
            return found

    def delay(self, seconds: float, path: str = "", times: int | None = None) -> Fault:
        """Answers come late."""
        return self.add(Fault(path=path, times=times, seconds=seconds))

    def black_hole(self, path: str = "", times: int | None = None) -> Fault:
        """Requests are taken and never answered."""
        return self.add(Fault(path=path, times=times, silent=True))

    def answer(
        self,
        status: int,
        message: str = "asked for by a test",
        *,
        path: str = "",
        methods: frozenset[str] = frozenset(),
        times: int | None = None,
        reason: str | None = None,
        retry_after: int | None = None,
    ) -> Fault:
        """Requests get this status; 429 and 503 may say when to come again."""
        error = ApiError(status, message, reason=reason, retry_after=retry_after)
        return self.add(Fault(methods=methods, path=path, times=times, error=error))

    def webhook_denies(self, why: str, path: str = "", name: str = "policy.example.com") -> Fault:
        """An admission webhook refuses writes."""
        message = f'admission webhook "{name}" denied the request: {why}'
        return self.answer(403, message, path=NO_REVIEW + path, methods=WRITES)
