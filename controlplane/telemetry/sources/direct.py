"""Read metrics pages straight from engines, many at a time, with bounds on time and size."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module

import httpx
from django.utils import timezone

from controlplane.telemetry.counters import Counters
from controlplane.telemetry.sources import page
from routing.core.signals import EngineSignals
from routing.engines.base import Engine

TIMEOUT_SECONDS = 3.0
MAX_PAGE_BYTES = 4 * 1024 * 1024
CONCURRENCY = 64
"""So that 4,096 silent engines take 192 s, less than a task may (httpx pools 100)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One page of one engine. `error` is empty if the page was read, else a sentence."""

    at: datetime
    signals: EngineSignals | None = None
    counters: Counters | None = None
    error: str = ""


def read_engines(urls: Mapping[str, str], engines: Mapping[str, str]) -> dict[str, Reading]:
    """Read the pages of engines by key; `engines` names the engine plugin of each key.

    Every key gets a reading within about TIMEOUT_SECONDS per CONCURRENCY pages; a page that is
    late, too large or not understood is an error in its reading and disturbs no other.
    """
    pages = asyncio.run(_fetch(urls))
    return {key: _reading(fetched, engines[key]) for key, fetched in pages.items()}


@dataclass(frozen=True, slots=True)
class _Page:
    at: datetime
    content: bytes = b""
    error: str = ""


async def _fetch(urls: Mapping[str, str]) -> dict[str, _Page]:
    places = asyncio.Semaphore(CONCURRENCY)
    async with httpx.AsyncClient(
        verify=_tls(), timeout=TIMEOUT_SECONDS, trust_env=False, follow_redirects=False
    ) as client:

        async def one(url: str) -> _Page:
            async with places:
                return await _page(client, url)

        pages = await asyncio.gather(*(one(url) for url in urls.values()))
    return dict(zip(urls, pages, strict=True))


async def _page(client: httpx.AsyncClient, url: str) -> _Page:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), client.stream("GET", url) as response:
            content = await _bounded(response)
    except TimeoutError:
        return _Page(timezone.now(), error=f"No answer within {TIMEOUT_SECONDS:g} s.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return _Page(timezone.now(), error=f"{type(error).__name__}: {error}"[:300])
    if response.status_code != httpx.codes.OK:
        return _Page(timezone.now(), error=f"The page answered {response.status_code}, not 200.")
    if content is None:
        return _Page(timezone.now(), error=f"The page is larger than {MAX_PAGE_BYTES} bytes.")
    return _Page(timezone.now(), content)


async def _bounded(response: httpx.Response) -> bytes | None:
    """The body, or None as soon as it passes the bound."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_PAGE_BYTES:
            return None
    return bytes(content)


def _reading(fetched: _Page, engine: str) -> Reading:
    if fetched.error:
        return Reading(at=fetched.at, error=fetched.error)
    try:
        signals = _plugin(engine).signals(fetched.content)
        counters = page.counters(fetched.content, signals)
    except (ModuleNotFoundError, ValueError) as error:
        return Reading(at=fetched.at, error=f"The page was not understood: {error}"[:300])
    if signals.generation_tokens_total is None and signals.running is None:
        return Reading(at=fetched.at, error=f"The page has no metrics of the engine {engine}.")
    return Reading(at=fetched.at, signals=signals, counters=counters)


@cache
def _plugin(slug: str) -> Engine:
    engine: Engine = import_module(f"routing.engines.{slug}").ENGINE
    return engine


@cache
def _tls() -> ssl.SSLContext:
    """Made once: loading the certificates costs more than reading a page."""
    return ssl.create_default_context()
