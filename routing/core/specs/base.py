"""What every part of a pool document is made of: strictness and bounded values."""

from typing import Annotated

import msgspec

Slug = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Timeout = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
# Whole numbers up to 2^53 fit into a float without loss; JSON itself has no bound.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
HttpUrl = Annotated[str, msgspec.Meta(pattern=r"^http://[^/\s]+$", max_length=300)]
Weight = Annotated[float, msgspec.Meta(ge=0)]
ZmqUrl = Annotated[str, msgspec.Meta(pattern=r"^tcp://[^/\s]+:\d+$", max_length=300)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every part: immutable, and a field that is not defined here is an error."""
