"""Certificates of nobody; see README.md beside them."""

import ssl
from collections.abc import Sequence
from pathlib import Path

CERTIFICATES = Path(__file__).parent


def trusting(name: str, *, offers: Sequence[str] = ("h2",)) -> ssl.SSLContext:
    """A client that believes one of them."""
    context = ssl.create_default_context(cafile=CERTIFICATES / f"{name}.crt")
    if offers:
        context.set_alpn_protocols(list(offers))
    return context
