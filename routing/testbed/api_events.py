"""Named events of the streams of Responses and of Anthropic's messages."""

from collections.abc import Mapping
from typing import Any

import orjson

from routing.testbed.http import chunk


def named(event: Mapping[str, Any]) -> bytes:
    """An event under the name that its `type` is, as one chunk."""
    name = str(event["type"]).encode()
    return chunk(b"event: %b\ndata: %b\n\n" % (name, orjson.dumps(event)))
