"""Every error code of the product with its words, found by looking at the error classes."""

from functools import cache

from controlplane.common.errors import DomainError


@cache
def catalogue() -> dict[str, type[DomainError]]:
    """Error classes by code, in the order of the codes."""
    found: dict[str, type[DomainError]] = {}
    waiting: list[type[DomainError]] = [DomainError]
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if kind.message:
            found.setdefault(kind.code, kind)
    return dict(sorted(found.items()))
