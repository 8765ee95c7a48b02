"""Leases: one holder at a time may act on a resource, and the loser of a pause finds out.

Time is the database's, so that the clocks of workers do not matter. Whoever acts passes the token
on; the target refuses a token smaller than the largest it has seen.
"""

from typing import Any

from django.db import connection

from controlplane.operations.models import Lease

_ACQUIRE = """
    INSERT INTO operations_lease AS lease (resource, holder, token, expires_at)
    VALUES (%(resource)s, %(holder)s, 1, clock_timestamp() + %(seconds)s * interval '1 second')
    ON CONFLICT (resource) DO UPDATE
       SET holder = excluded.holder, token = lease.token + 1, expires_at = excluded.expires_at
     WHERE lease.expires_at <= clock_timestamp() OR lease.holder = excluded.holder
    RETURNING token, expires_at
"""
_RENEW = """
    UPDATE operations_lease SET expires_at = clock_timestamp() + %(seconds)s * interval '1 second'
     WHERE resource = %(resource)s AND holder = %(holder)s AND token = %(token)s
       AND expires_at > clock_timestamp()
    RETURNING expires_at
"""
_RELEASE = """
    UPDATE operations_lease SET expires_at = clock_timestamp()
     WHERE resource = %(resource)s AND holder = %(holder)s AND token = %(token)s
       AND expires_at > clock_timestamp()
    RETURNING token
"""


def acquire(resource: str, *, holder: str, seconds: float) -> Lease | None:
    """Take the lease for `seconds`; None while somebody else holds it.

    A holder that asks again gets a larger token, which fences off its own earlier self: so the name
    of a holder must be unique to one attempt or one process.
    """
    row = _one(_ACQUIRE, resource=resource, holder=holder, seconds=seconds)
    if row is None:
        return None
    token, expires_at = row
    return Lease(resource=resource, holder=holder, token=token, expires_at=expires_at)


def renew(lease: Lease, *, seconds: float) -> bool:
    """Keep the lease for `seconds` from now; false if it has lapsed or is somebody else's."""
    row = _one(
        _RENEW, resource=lease.resource, holder=lease.holder, token=lease.token, seconds=seconds
    )
    if row is None:
        return False
    (lease.expires_at,) = row
    return True


def release(lease: Lease) -> bool:
    """Give the lease back; false if it has lapsed or is somebody else's. The token stays."""
    row = _one(_RELEASE, resource=lease.resource, holder=lease.holder, token=lease.token)
    return row is not None


def _one(statement: str, **values: str | float) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
