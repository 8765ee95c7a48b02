"""HTTP clients of serving: time-outs always, no proxy from the environment, one TLS context."""

import ssl
from functools import cache

import httpx


def client(timeout: httpx.Timeout) -> httpx.Client:
    """A client to use in a `with` block; making one costs little."""
    return httpx.Client(timeout=timeout, verify=_context(), trust_env=False)


@cache
def _context() -> ssl.SSLContext:
    """Reading the certificates takes longer than most requests, so it is done once."""
    return ssl.create_default_context()
