"""The right to act for a pool: an operations lease that is looked at before each act outside."""

import os
import uuid
from dataclasses import dataclass

from django.conf import settings

from controlplane.operations import leases
from controlplane.operations.models import Lease
from controlplane.serving.models import Pool


class HoldLostError(Exception):
    """Another loop run acts for the pool; this one stops at once."""


@dataclass(slots=True)
class Hold:
    """A lease on a pool; `token` fences off earlier holders at the targets."""

    lease: Lease

    @property
    def token(self) -> int:
        """Grows with each holder."""
        return int(self.lease.token)

    def renew(self) -> None:
        """Keep it, or raise HoldLostError."""
        if not leases.renew(self.lease, seconds=seconds()):
            raise HoldLostError(self.lease.resource)


def seconds() -> float:
    """How long a dead holder blocks the pool; longer than a single call to the outside."""
    return float(settings.SERVING_LEASE_SECONDS)


def take(pool: Pool) -> Hold | None:
    """The lease of a pool; None while another run has it."""
    holder = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    lease = leases.acquire(f"serving.pool:{pool.pk}", holder=holder, seconds=seconds())
    return None if lease is None else Hold(lease)


def release(hold: Hold) -> None:
    """Give it back; a lapsed one is somebody else's already."""
    leases.release(hold.lease)
