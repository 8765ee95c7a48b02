"""Counts failed logins per address in the shared cache."""

from django.core.cache import cache
from redis.exceptions import RedisError

from controlplane.tenancy.errors import LoginUnavailableError, TooManyAttemptsError

FAILURES = 10
WINDOW_SECONDS = 60


def check(address: str) -> None:
    """Raise TooManyAttemptsError when the address has used up its failures."""
    try:
        failures = cache.get(_key(address), 0)
    except (RedisError, OSError) as error:
        raise LoginUnavailableError from error
    if failures >= FAILURES:
        raise TooManyAttemptsError(retry_after_seconds=WINDOW_SECONDS)


def count(address: str) -> None:
    """Count one failure; the count is forgotten a minute after the first."""
    try:
        if not cache.add(_key(address), 1, WINDOW_SECONDS):
            cache.incr(_key(address))
    except ValueError:
        # The minute ended between the two calls: this failure is the first of the next.
        cache.set(_key(address), 1, WINDOW_SECONDS)
    except (RedisError, OSError) as error:
        raise LoginUnavailableError from error


def _key(address: str) -> str:
    return f"login-failures:{address}"
