"""Limits of tenants and of keys at this router: requests/s, tokens/min, requests at once.

A request is checked against its tenant's and its key's limits; each must have room, so the tightest
one decides. What it takes is a `Grant`, given back exactly once.

- requests/s and tokens/min are token buckets of one second and one minute. A request that is larger
  than a full bucket passes when the bucket is full; the level goes below zero and recovers.
- Tokens are **reserved** at admission by estimate (prompt and expected output) and **settled** when
  the response has ended. The lag: until then a tenant is held to the estimate, so a burst of
  answers much longer than expected can exceed the limit once, by what is in flight, and pays for it
  in the following minute. Requests that failed before their first token are given back whole.
- Routers and processes of a pool tell each other what they use (`routing.pool.peering`), so a limit
  holds for all of them together, but for what happens until they hear of it. One that hears nobody
  enforces the numbers by itself.
"""

import math
from typing import Literal

import msgspec
import xxhash

from routing.core.document import KeySpec, TenantSpec
from routing.core.request import InferenceRequest
from routing.producers.bucket import Bucket

BURST_SECONDS = 1.0
"""A bucket of requests holds what may be sent in this time, and at least one request."""
TOKEN_WINDOW_SECONDS = 60.0
BUSY_RETRY_SECONDS = 1.0
"""Retry-After when a limit of concurrent requests is reached: when one ends is not known."""

LimitName = Literal["concurrency", "requests_per_second", "tokens_per_minute"]
LIMIT_NAMES: tuple[LimitName, ...] = ("concurrency", "requests_per_second", "tokens_per_minute")


class Exceeded(msgspec.Struct, frozen=True, kw_only=True):
    """The limit that stops a request, and when it may be tried again."""

    level: Literal["tenant", "key"]
    name: LimitName
    value: float
    wait_seconds: float

    @property
    def rule(self) -> str:
        """Id for records: which limit decided."""
        return f"limit:{self.level}.{self.name}"


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """The tightest bucket of a kind."""

    limit: int
    remaining: int
    reset_seconds: float
    """Until the bucket is full again."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has running of a tenant or key, and has used of it since the node's start."""

    open: int
    requests: float
    tokens: float


class _Level:
    """The limits of one tenant or key, and what is used of them."""

    __slots__ = (
        "concurrency", "elsewhere", "kind", "open", "requests", "sent", "spec", "spent", "tokens",
    )  # fmt: skip

    def __init__(self, kind: Literal["tenant", "key"]) -> None:
        self.kind: Literal["tenant", "key"] = kind
        self.open = 0
        self.elsewhere = 0
        """Requests of it that run at other nodes."""
        self.sent = self.spent = 0
        """Requests and tokens since the start."""
        self.spec: TenantSpec | KeySpec | None = None
        self.concurrency: float = math.inf
        self.requests: Bucket | None = None
        self.tokens: Bucket | None = None

    def install(self, spec: TenantSpec | KeySpec | None, *, now: float) -> None:
        """Take over another document's limits; what was used of them stays used."""
        self.spec = spec
        most = spec.concurrency if spec else None
        self.concurrency = math.inf if most is None else most
        rate = spec.requests_per_second if spec else None
        size = None if rate is None else max(1.0, rate * BURST_SECONDS)
        self.requests = _bucket(self.requests, rate, size, now=now)
        tokens = spec.tokens_per_minute if spec else None
        rate = None if tokens is None else tokens / TOKEN_WINDOW_SECONDS
        self.tokens = _bucket(self.tokens, rate, tokens, now=now)

    def exceeded(self, tokens: int, *, now: float) -> Exceeded | None:
        """The limit of this level that has no room for one more request."""
        if self.open + self.elsewhere >= self.concurrency:
            return self._stop("concurrency", BUSY_RETRY_SECONDS)
        if self.requests is not None:
            wait = self.requests.wait(1.0, now=now)
            if wait > 0:
                return self._stop("requests_per_second", wait)
        if self.tokens is not None:
            wait = self.tokens.wait(tokens, now=now)
            if wait > 0:
                return self._stop("tokens_per_minute", wait)
        return None

    def _stop(self, name: LimitName, wait: float) -> Exceeded:
        value = float(getattr(self.spec, name))
        return Exceeded(level=self.kind, name=name, value=value, wait_seconds=wait)

    def take(self, tokens: int, *, now: float) -> None:
        self.open += 1
        self.sent += 1
        self.spent += tokens
        self._draw(1, tokens, now=now)

    def _draw(self, requests: float, tokens: float, *, now: float) -> None:
        if self.requests is not None:
            self.requests.take(requests, now=now)
        if self.tokens is not None:
            self.tokens.take(tokens, now=now)

    def end(self, reserved: int, used: int) -> None:
        self.open -= 1
        self.spent += used - reserved
        if self.tokens is not None:
            self.tokens.give_back(reserved - used)

    def hear(self, before: Use, use: Use, *, now: float) -> None:
        """Another node used more; never more at once than a whole bucket holds."""
        self.elsewhere += use.open - before.open
        requests, tokens = use.requests - before.requests, use.tokens - before.tokens
        most = self.requests.size if self.requests else 0.0
        self._draw(min(requests, most), 0.0, now=now)
        most = self.tokens.size if self.tokens else 0.0
        self._draw(0.0, min(tokens, most), now=now)


def _bucket(
    old: Bucket | None, rate: float | None, size: float | None, *, now: float
) -> Bucket | None:
    if rate is None or size is None:
        return None
    if old is None:
        return Bucket(rate, size, now=now)
    if (old.rate, old.size) != (rate, size):
        old.resize(rate, size, now=now)
    return old


class Grant:
    """What one request took of its limits. `close` gives back, and does nothing the second time."""

    __slots__ = ("_levels", "_reserved", "_used", "is_open", "requests")

    def __init__(
        self, request: InferenceRequest, levels: tuple[_Level, ...], reserved: int
    ) -> None:
        self.requests = [request]
        """Those that hold it, kept alive: their identity is the key."""
        self._levels = levels
        self._reserved = reserved
        self._used = 0
        self.is_open = True

    def use(self, tokens: int) -> None:
        """Tokens of an attempt that was at least begun to be answered."""
        self._used += tokens

    def close(self) -> None:
        """The response has ended: tokens become those that were used."""
        if not self.is_open:
            return
        self.is_open = False
        for level in self._levels:
            level.end(self._reserved, self._used)


class TenantLimits:
    """All levels that a document limits, and the grants of requests inside the router."""

    def __init__(
        self, tenants: tuple[TenantSpec, ...], *, now: float, keys: tuple[KeySpec, ...] = ()
    ) -> None:
        self._specs: dict[str, TenantSpec] = {}
        self._levels: dict[tuple[str, str], _Level] = {}
        self._grants: dict[int, Grant] = {}
        self._names: dict[str, _Level] = {}
        """Levels by the name that nodes call them."""
        self._heard: dict[tuple[str, str], _Heard] = {}
        self.apply(tenants, now=now, keys=keys)

    @property
    def is_limiting(self) -> bool:
        """Whether the document limits anybody."""
        return bool(self._levels)

    def spec(self, tenant: str) -> TenantSpec | None:
        """The tenant's entry, if the document has any."""
        return self._specs.get(tenant)

    def apply(
        self, tenants: tuple[TenantSpec, ...], *, now: float, keys: tuple[KeySpec, ...] = ()
    ) -> None:
        """Take another document's limits; what is used of them stays used."""
        self._specs = {spec.tenant: spec for spec in tenants}
        wanted: dict[tuple[str, str], TenantSpec | KeySpec] = {}
        wanted.update((("tenant", spec.tenant), spec) for spec in tenants if _is_limited(spec))
        wanted.update((("key", key.id), key) for key in keys if _is_limited(key))
        for name, level in list(self._levels.items()):
            if name not in wanted:
                level.install(None, now=now)
                if not level.open:
                    del self._levels[name]
        for name, spec in wanted.items():
            found = self._levels.get(name)
            if found is None:
                found = self._levels[name] = _Level("tenant" if name[0] == "tenant" else "key")
            found.install(spec, now=now)
        self._names = {name_of(*name): level for name, level in self._levels.items()}
        self._heard = {key: heard for key, heard in self._heard.items() if key[1] in self._names}

    def exceeded(self, request: InferenceRequest, *, tokens: int, now: float) -> Exceeded | None:
        """The limit that stops a request the longest; `None` lets it pass.

        A request that holds a grant was let in already.
        """
        if not self._levels or self.holds(request):
            return None
        longest = None
        for level in self._of(request.tenant, request.key_id):
            stop = level.exceeded(tokens, now=now)
            if stop is not None and (longest is None or stop.wait_seconds > longest.wait_seconds):
                longest = stop
        return longest

    def _of(self, tenant: str, key_id: str) -> tuple[_Level, ...]:
        found = self._levels.get(("tenant", tenant)), self._levels.get(("key", key_id))
        return tuple(level for level in found if level is not None)

    def holds(self, request: InferenceRequest) -> bool:
        """Whether this request object holds a grant."""
        return id(request) in self._grants

    def take(self, request: InferenceRequest, *, tokens: int, now: float) -> Grant | None:
        """Take one request and its expected tokens from its limits; `None` when nothing limits."""
        levels = self._of(request.tenant, request.key_id)
        if not levels:
            return None
        for level in levels:
            level.take(tokens, now=now)
        return Grant(request, levels, tokens)

    def reserve(self, request: InferenceRequest, *, tokens: int, now: float) -> None:
        """`take` for a request object that holds it until `settle`, once."""
        if not self._levels or self.holds(request):
            return
        grant = self.take(request, tokens=tokens, now=now)
        if grant is not None:
            self._grants[id(request)] = grant

    def use(self, request: InferenceRequest, tokens: int) -> None:
        """Tokens that an attempt of a request cost."""
        grant = self._grants.get(id(request)) if self._grants else None
        if grant is not None:
            grant.use(tokens)

    def settle(self, request: InferenceRequest) -> None:
        """The request has left the router; again, or without a grant, it does nothing."""
        grant = self._grants.get(id(request)) if self._grants else None
        if grant is not None:
            grant.close()
            for held in grant.requests:
                self._grants.pop(id(held), None)

    def follow(self, request: InferenceRequest, *, of: InferenceRequest) -> None:
        """A request goes on as another one: both are one in the limits."""
        grant = self._grants.get(id(of)) if self._grants else None
        if grant is not None:
            grant.requests.append(request)
            self._grants[id(request)] = grant

    def open_grants(self) -> int:
        """Requests inside the router that some limit counts."""
        return len(self._grants)

    def remaining(
        self, tenant: str, key_id: str, *, now: float
    ) -> tuple[Remaining | None, Remaining | None]:
        """The tightest bucket of requests and of tokens; `None` where nothing limits."""
        if not self._levels:
            return None, None
        levels = self._of(tenant, key_id)
        return (
            _tightest([level.requests for level in levels], now=now),
            _tightest([level.tokens for level in levels], now=now),
        )

    # Other nodes.

    def own_use(self) -> dict[str, Use]:
        """What this node uses of each limited tenant and key, by the name that nodes call it."""
        return {
            name: Use(open=level.open, requests=level.sent, tokens=max(0, level.spent))
            for name, level in self._names.items()
        }

    def hear(self, node: str, life: tuple[int, int], name: str, use: Use, *, now: float) -> None:
        """What another node uses. `life` is its epoch and the number of its packet.

        What it used before it was heard the first time is over: only its running requests count.
        """
        level = self._names.get(name)
        if level is None:
            return
        heard = self._heard.get((node, name))
        if heard is not None and heard.life >= life:
            return
        if heard is None:
            before = Use(open=0, requests=use.requests, tokens=use.tokens)
        elif heard.life[0] < life[0]:
            before = Use(open=heard.use.open, requests=0, tokens=0)
        else:
            before = heard.use
        level.hear(before, use, now=now)
        self._heard[node, name] = _Heard(life=life, use=use)

    def keep_nodes(self, nodes: list[str]) -> None:
        """Requests of other nodes are over."""
        if not self._heard:
            return
        for (node, name), heard in list(self._heard.items()):
            if node not in nodes:
                self._names[name].elsewhere -= heard.use.open
                del self._heard[node, name]


class _Heard(msgspec.Struct, frozen=True, kw_only=True):
    life: tuple[int, int]
    use: Use


def name_of(kind: str, who: str) -> str:
    """What nodes call a tenant or key: a hash, so that packets are short and name nobody."""
    return xxhash.xxh3_64_hexdigest(f"{kind}:{who}".encode())


def _is_limited(spec: TenantSpec | KeySpec) -> bool:
    return any(getattr(spec, name) is not None for name in LIMIT_NAMES)


def _tightest(buckets: list[Bucket | None], *, now: float) -> Remaining | None:
    present = [bucket for bucket in buckets if bucket is not None]
    if not present:
        return None
    bucket = min(present, key=lambda each: each.level(now=now))
    level = bucket.level(now=now)
    return Remaining(
        limit=int(bucket.size),
        remaining=max(0, int(level)),
        reset_seconds=max(0.0, (bucket.size - level) / bucket.rate),
    )
