"""Talking to a cluster without being held up by it.

A cluster that does not answer costs time-outs. Three bounds keep them small, for all workers of the
installation together, since they stand in the database:

- at most CLUSTER_RUNS pieces of work talk to one cluster at once, each with a lease;
- after a failure nobody asks before `retry_at`, which moves away with every failure in a row;
- when that time has come, one run asks, and the others wait for how it goes.
"""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.operations import leases, outbox
from controlplane.operations.models import Lease
from inventory.kubernetes.client import ClusterClient
from inventory.kubernetes.connection import Connection, read_connection
from inventory.kubernetes.errors import ClusterError, ClusterUnavailableError, CredentialsError
from inventory.models import Cluster

FIRST_WAIT_SECONDS = 5.0
MOST_WAIT_SECONDS = 300.0
"""Longest time between two attempts; a server that asks for more is given more."""
RUN_SECONDS = 120.0
"""So long a run holds its place at most; the longest page of work with a cluster takes 60 s."""
NOTE_SECONDS = 15
"""An answer is noted again after so long, so that a steady state writes little."""
BUSY_SECONDS = 1.0

_clients: dict[UUID, ClusterClient] = {}
_clients_lock = threading.Lock()


@contextmanager
def open_client(
    cluster: Cluster, *, seconds: float = RUN_SECONDS, for_person: bool = False
) -> Iterator[ClusterClient]:
    """A client for one piece of work of at most `seconds`; how it went is noted at its end.

    `for_person`: somebody waits for it, so it asks also before `retry_at`, and has a place of its
    own beside those of other work.

    Raises ClusterUnavailableError at once while the cluster is not asked or has runs enough, and
    CredentialsError. Inside, once the server did not answer, every further call raises at once.
    Not to be used inside a transaction: the note must stay when the work is undone.
    """
    began = timezone.now()
    if not for_person:
        _check_wait(cluster)
    slot = _take_slot(cluster, seconds, places=settings.CLUSTER_RUNS + int(for_person))
    try:
        probing = not for_person and _claim_attempt(cluster)
        client = _client(cluster)
        try:
            yield client
        finally:
            _note(cluster, client, began=began, probing=probing)
    except CredentialsError as error:
        record_failure(cluster.pk, error)
        raise
    finally:
        leases.release(slot)


@transaction.atomic
def record_answer(cluster_id: UUID, *, at: datetime | None = None) -> None:
    """The cluster answered: it is asked without waiting again.

    `at`, when it did, is now unless it is given; an answer from before the last failure is no news.
    """
    now = timezone.now()
    rows = Cluster.objects.filter(pk=cluster_id)
    if at is not None:
        rows = rows.exclude(failures__gt=0, asked_at__gt=at)
    back = rows.filter(failures__gt=0).update(
        failures=0, retry_at=None, error="", error_code="", error_facts={},
        answered_at=now, asked_at=now, updated_at=now,
    )  # fmt: skip
    if back:
        outbox.emit("consort.cluster.answered", subject=rows.get())
        return
    old = now - timedelta(seconds=NOTE_SECONDS)
    rows.exclude(asked_at__gt=old, answered_at__gt=old, error="").update(
        retry_at=None, error="", error_code="", error_facts={},
        answered_at=now, asked_at=now, updated_at=now,
    )  # fmt: skip


@transaction.atomic
def record_failure(cluster_id: UUID, error: ClusterError, *, began: datetime | None = None) -> None:
    """The cluster did not answer, or its credentials cannot be used.

    Only silence moves the time of the next attempt: credentials are read again at each. Work that
    `began` before the last failure met the same silence, so it does not count once more.
    """
    cluster = Cluster.objects.select_for_update(no_key=True, of=("self",)).get(pk=cluster_id)
    now = timezone.now()
    again = isinstance(error, CredentialsError) and cluster.error == str(error)[:500]
    if again and cluster.asked_at and now - cluster.asked_at < timedelta(seconds=NOTE_SECONDS):
        return
    last = cluster.asked_at
    is_same = bool(cluster.failures and began is not None and last is not None and began < last)
    cluster.asked_at, cluster.error = now, str(error)[:500]
    cluster.error_code = error.code
    cluster.error_facts = {name: str(value)[:200] for name, value in _facts(error).items()}
    fields = ["asked_at", "error", "error_code", "error_facts", "updated_at"]
    if isinstance(error, ClusterUnavailableError):
        cluster.failures += 0 if is_same else 1
        cluster.retry_at = now + timedelta(seconds=wait_seconds(cluster.failures, error))
        fields += ["failures", "retry_at"]
    cluster.save(update_fields=fields)
    if isinstance(error, ClusterUnavailableError) and cluster.failures == 1 and not is_same:
        outbox.emit("consort.cluster.silent", subject=cluster)


def wait_seconds(failures: int, error: ClusterUnavailableError) -> float:
    """Seconds until the next attempt: doubled by each failure, never less than was asked for."""
    doubled: float = FIRST_WAIT_SECONDS * 2 ** min(max(failures, 1) - 1, 10)
    return max(min(doubled, MOST_WAIT_SECONDS), error.retry_after or 0.0)


def connection_of(reference: str) -> Connection:
    """The connection behind a reference, with this installation's folder of credentials."""
    folder = settings.CLUSTER_CREDENTIALS_DIR
    return read_connection(reference, Path(folder) if folder else None)


def forget_client(cluster_id: UUID) -> None:
    """Close what this process keeps open to a cluster."""
    with _clients_lock:
        client = _clients.pop(cluster_id, None)
    if client is not None:
        client.close()


def _check_wait(cluster: Cluster) -> datetime | None:
    """Until when nobody was to ask, if that time has come; raises while it has not."""
    row = Cluster.objects.filter(pk=cluster.pk).values("retry_at", "error").get()
    retry_at: datetime | None = row["retry_at"]
    wait = (retry_at - timezone.now()).total_seconds() if retry_at else 0.0
    if wait > 0:
        raise ClusterUnavailableError(
            f"The cluster did not answer and is asked again in {wait:.0f} s. Last: {row['error']}",
            retry_after=wait,
        )
    return retry_at


def _claim_attempt(cluster: Cluster) -> bool:
    """Whether this run is the attempt after failures; raises when another one is."""
    retry_at = _check_wait(cluster)
    if retry_at is None:
        return False
    # Of several runs at once one moves the time on, and asks.
    seconds = settings.CLUSTER_TIMEOUT_SECONDS + FIRST_WAIT_SECONDS
    until = timezone.now() + timedelta(seconds=seconds)
    if not Cluster.objects.filter(pk=cluster.pk, retry_at=retry_at).update(retry_at=until):
        raise ClusterUnavailableError(
            "The cluster did not answer; another worker asks it at present.",
            retry_after=BUSY_SECONDS,
        )
    return True


def _take_slot(cluster: Cluster, seconds: float, *, places: int) -> Lease:
    """One of the places for runs; raises when all are taken."""
    holder = uuid.uuid4().hex
    for number in range(places):
        lease = leases.acquire(
            f"inventory.cluster:{cluster.pk}:{number}", holder=holder, seconds=seconds
        )
        if lease is not None:
            return lease
    raise ClusterUnavailableError(
        f"{places} pieces of work talk to the cluster at present.",
        retry_after=BUSY_SECONDS,
    )


def _client(cluster: Cluster) -> ClusterClient:
    """The client that this process keeps, or one with the credentials as they are now."""
    connection = connection_of(cluster.connection_reference)
    with _clients_lock:
        kept = _clients.get(cluster.pk)
        if kept is None or kept.connection != connection:
            kept = ClusterClient(connection, timeout=settings.CLUSTER_TIMEOUT_SECONDS)
            _clients[cluster.pk] = kept
    return kept.for_one_run()


def _note(cluster: Cluster, client: ClusterClient, *, began: datetime, probing: bool) -> None:
    if client.failure is not None:
        record_failure(cluster.pk, client.failure, began=began)
    elif client.answered_at is not None:
        record_answer(cluster.pk, at=client.answered_at)
    elif probing:
        # Nothing was asked: the next run may ask at once.
        Cluster.objects.filter(pk=cluster.pk).update(retry_at=timezone.now())


def _facts(error: ClusterError) -> dict[str, object]:
    return dict(error.facts) if isinstance(error, CredentialsError) else {}
