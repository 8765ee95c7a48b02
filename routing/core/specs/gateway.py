"""What operators of a gateway state of requests: names of priorities, and of models."""

from typing import Annotated

import msgspec

from routing.core.specs.base import Slug, Strict

Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Objectives = Annotated[dict[Slug, Priority], msgspec.Meta(max_length=1000)]
"""Priority by the name that a request states in a header; a name that is not here is priority 0."""


class RewriteTarget(Strict, frozen=True, kw_only=True):
    """A model that requests of a rule are sent to under its own name."""

    model: Slug
    """One of the document's models."""
    weight: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Its part of the callers, of the sum of all weights; on all targets of a rule or on none."""


class Rewrite(Strict, frozen=True, kw_only=True):
    """A rule: whoever asks for one of `models` gets one of `targets`, the same each time.

    A rule that names the model comes before one for every model; among equals the first counts.
    """

    models: Annotated[tuple[Slug, ...], msgspec.Meta(max_length=100)] = ()
    """Names that clients ask for, whether an engine serves them or not; () is every name."""
    targets: Annotated[tuple[RewriteTarget, ...], msgspec.Meta(min_length=1, max_length=100)]


Rewrites = Annotated[tuple[Rewrite, ...], msgspec.Meta(max_length=500)]
