"""Brings the latest document of a pool to routers.

One router first: only when some router has taken the document do the others get it, so a document
that is refused leaves every router on the one before. New settings wait a while on that router
(`canary`). What only takes rights away goes to all at once. Level-triggered: what counts is what a
router says it has, so one that was away gets what it missed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import httpx
from django.db import transaction
from django.utils import timezone

from controlplane.serving import outward
from controlplane.serving.documentchanges import Change, change_between
from controlplane.serving.errors import RouterTokenError
from controlplane.serving.models import Pool, PoolDocument, Router, RouterPush
from controlplane.serving.services import canary
from controlplane.serving.services.publishing import document_of, publish_if_changed
from controlplane.serving.services.routers import (
    TIMEOUT,
    at_once,
    in_reach,
    token_of,
    version_at,
)

State = RouterPush.State


@dataclass(frozen=True, slots=True)
class Answer:
    """What a router said to a push."""

    state: str
    pointer: str = ""
    detail: str = ""


def push_latest(pool: Pool) -> bool:
    """Bring the latest document to the routers that do not have it; True while a canary is watched.

    `pool` is read again, since settings may have been changed meanwhile.
    """
    pool.refresh_from_db(fields=["accepted_settings", "canary", "canary_seconds"])
    document = pool.documents.order_by("-version").first()
    if document is None:
        return False
    in_use = list(Router.objects.filter(enabled=True))
    due = _behind(pool, document, in_use)
    if _is_refused(document):
        return False
    if due and _takes_rights_away(pool, document):
        _send_to_all(document, due)
    if canary.needs_one(pool, document, len(in_use)):
        return _push_to_canary(pool, document, in_use)
    due = _behind(pool, document, in_use)
    if due and len(due) == len(in_use):
        due = _send_to_first(document, due)[1]
    _send_to_all(document, due)
    if document.pushes.filter(state=State.ACKNOWLEDGED).exists():
        canary.accept(pool, document)
    _overtake(pool, document)
    return False


def _behind(pool: Pool, document: PoolDocument, routers: list[Router]) -> list[Router]:
    return [router for router in routers if version_at(router, pool) != document.version]


def _push_to_canary(pool: Pool, document: PoolDocument, in_use: list[Router]) -> bool:
    """New settings: on one router, then watched, then on the rest. True while they are watched."""
    due = _behind(pool, document, in_use)
    if not canary.is_observed(pool, document):
        taker, _ = _send_to_first(document, due)
        if taker is not None:
            canary.begin(pool, document, taker)
        _overtake(pool, document)
        return taker is not None
    name = pool.canary["router"]
    # Engines or keys changed while the settings are watched: the canary goes on with them.
    _send_to_all(document, [router for router in due if router.name == name])
    verdict = canary.look(pool)
    if verdict == "passed":
        _send_to_all(document, [router for router in due if router.name != name])
        canary.accept(pool, document)
    elif verdict == "tripped":
        publish_if_changed(pool_id=pool.pk, reason=pool.canary["why"])
    elif verdict == "gone":
        taker, _ = _send_to_first(document, [router for router in due if router.name != name])
        if taker is not None:
            canary.begin(pool, document, taker)
    return verdict != "passed"


def _takes_rights_away(pool: Pool, document: PoolDocument) -> bool:
    before = pool.documents.filter(version__lt=document.version).order_by("-version").first()
    if before is None or before.settings_sha256 != document.settings_sha256:
        return False
    return change_between(document_of(before), document_of(document)) is Change.RIGHTS_TAKEN


def _send_to_first(document: PoolDocument, due: list[Router]) -> tuple[Router | None, list[Router]]:
    """Push to one router that takes it, those in reach first; that router and the rest.

    Nobody and no rest, if nobody took it or one refused it.
    """
    reached = {router.pk for router in in_reach(due)}
    ordered = sorted(due, key=lambda router: router.pk not in reached)
    for position, router in enumerate(ordered):
        answer = _sender(document)(router)
        _note(router, document, answer, canary=True)
        if answer.state == State.ACKNOWLEDGED:
            return router, ordered[position + 1 :]
        if answer.state == State.REFUSED:
            break
    return None, []


def _send_to_all(document: PoolDocument, due: list[Router]) -> None:
    answers = at_once(_sender(document), due)
    for router, answer in zip(due, answers, strict=True):
        _note(router, document, answer, canary=False)


def _is_refused(document: PoolDocument) -> bool:
    return document.pushes.filter(state=State.REFUSED).exists()


def _overtake(pool: Pool, document: PoolDocument) -> None:
    """Publish above the version of a router that is ahead, as after a database was restored."""
    ahead = [
        int(version)
        for version in document.pushes.filter(pointer="/version").values_list("detail", flat=True)
        if version.isdecimal()
    ]
    if ahead:
        publish_if_changed(
            pool_id=pool.pk, reason="A router had a later version.", at_least=max(ahead) + 1
        )


def _sender(document: PoolDocument) -> Callable[[Router], Answer]:
    content = document.content.encode()

    def send(router: Router) -> Answer:
        try:
            token = token_of(router)
            with outward.client(TIMEOUT) as client:
                answer = client.put(
                    f"{router.admin_url}/admin/pool-document",
                    content=content,
                    headers={
                        "Authorization": f"Bearer {token}",
                        "Content-Type": "application/json",
                    },
                )
        except RouterTokenError as error:
            return Answer(state=State.FAILED, detail=str(error))
        except httpx.HTTPError as error:
            return Answer(
                state=State.FAILED, detail=f"{router.admin_url} did not answer: {error!r}."
            )
        return _answer_of(answer)

    return send


def _answer_of(answer: httpx.Response) -> Answer:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    if answer.is_success:
        return Answer(state=State.ACKNOWLEDGED)
    detail = str(body.get("detail", f"The router answered {answer.status_code}."))
    if body.get("code") == "version-not-newer" and isinstance(body.get("version"), int):
        version = int(body["version"])
        return Answer(state=State.REFUSED, pointer="/version", detail=str(version))
    if answer.status_code in {400, 413, 422}:
        return Answer(state=State.REFUSED, pointer=str(body.get("pointer", "")), detail=detail)
    return Answer(state=State.FAILED, detail=detail)


@transaction.atomic
def _note(router: Router, document: PoolDocument, answer: Answer, *, canary: bool) -> None:
    now = timezone.now()
    push, _created = RouterPush.objects.select_for_update(no_key=True).get_or_create(
        router=router, document=document
    )
    push.state, push.pointer, push.detail = answer.state, answer.pointer[:300], answer.detail
    push.canary, push.attempts, push.sent_at = canary, push.attempts + 1, now
    push.ended_at = now if answer.state != State.FAILED else None
    push.save()
    if answer.state == State.ACKNOWLEDGED:
        router.documents = router.documents | {
            document.pool.slug: {"version": document.version, "hash": document.sha256}
        }
        router.heard_at = now
        router.save(update_fields=["documents", "heard_at", "updated_at"])
