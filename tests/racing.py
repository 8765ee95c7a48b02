"""Runs one function in several threads at the same moment, for tests of locks and claims."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

DEADLINE_SECONDS = 30


def at_the_same_time(count: int, function: Callable[..., Any], **arguments: Any) -> list[str]:
    """Names of what came out: the type of each result, or of the exception in its place.

    Each call has a connection of its own, so the test needs `django_db(transaction=True)`.
    """
    gate = threading.Barrier(count)

    def call() -> str:
        gate.wait(DEADLINE_SECONDS)
        try:
            return type(function(**arguments)).__name__
        except Exception as error:  # noqa: BLE001 - the outcome is what the test looks at
            return type(error).__name__
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(call) for _ in range(count)]
        return sorted(future.result(DEADLINE_SECONDS) for future in futures)
