"""From rows to an immutable pool document: a version more when something differs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from controlplane.operations import outbox
from controlplane.serving import documents, figures
from controlplane.serving.documentchanges import settings_sha256, with_settings_of
from controlplane.serving.models import Endpoint, Pool, PoolDocument, Router, RouterPush
from controlplane.serving.services import canary
from controlplane.tenancy import selectors as tenancy
from routing.core.document import PoolDocument as Document
from routing.core.document import encode_document

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

logger = logging.getLogger(__name__)

State = Endpoint.State
Prices = Callable[[Sequence[UUID]], Mapping[UUID, Decimal | None]]


@transaction.atomic
def publish_if_changed(
    *, pool_id: UUID, author: "User | None" = None, reason: str = "", at_least: int = 1
) -> PoolDocument | None:
    """Store the next version if the pool's content differs from the last one, else None.

    `at_least` asks for a version of at least that number, for routers that are ahead of the rows.
    Raises DocumentError if the rows do not make a document that a router would take.
    """
    pool = Pool.objects.select_for_update(no_key=True, of=("self",)).select_related("model")
    pool_row = pool.get(pk=pool_id)
    body = _without_held_settings(pool_row, documents.build(pool_facts(pool_row)))
    body_sha256 = documents.sha256(body)
    last = pool_row.documents.order_by("-version").first()
    if last and last.body_sha256 == body_sha256 and last.version >= at_least:
        return None
    version = max(1 + (last.version if last else 0), at_least)
    content = documents.published(
        body,
        version=version,
        author=author.username if author else "consort",
        created_at=timezone.now().isoformat(timespec="seconds"),
    )
    row = PoolDocument.objects.create(
        pool=pool_row,
        version=version,
        content=encode_document(content).decode(),
        sha256=documents.sha256(content),
        body_sha256=body_sha256,
        settings_sha256=settings_sha256(body),
        author=author,
        reason=reason[:300],
    )
    RouterPush.objects.filter(
        document__pool=pool_row, state__in=[RouterPush.State.PENDING, RouterPush.State.FAILED]
    ).update(state=RouterPush.State.SUPERSEDED, updated_at=timezone.now())
    RouterPush.objects.bulk_create(
        RouterPush(router=router, document=row) for router in Router.objects.filter(enabled=True)
    )
    outbox.emit("consort.pooldocument.published", subject=row, data={"version": version})
    return row


def _without_held_settings(pool: Pool, body: Document) -> Document:
    """The body, under the settings before if its own tripped their canary.

    Other settings than those that tripped end the hold.
    """
    if not pool.canary:
        return body
    settings_of_body = settings_sha256(body)
    if pool.canary["settings"] != settings_of_body:
        pool.canary = {}
        pool.save(update_fields=["canary", "updated_at"])
    if not canary.is_held(pool, settings_of_body):
        return body
    good = pool.documents.filter(settings_sha256=pool.accepted_settings).order_by("-version")
    last_good = good.first()
    return body if last_good is None else with_settings_of(body, document_of(last_good))


def pool_facts(pool: Pool) -> documents.PoolFacts:
    """What the document of a pool says, from rows; endpoints of unknown speed are left out."""
    endpoints = list(
        Endpoint.objects.filter(pool=pool, state__in=[State.READY, State.DRAINING])
        .select_related("workload__accelerator__model", "node__cluster__site")
        .order_by("workload__name")
    )
    models = {row.workload.accelerator.model for row in endpoints}
    priors = {row.slug: figures.prior(row, pool.model) for row in models}
    classes = {
        figures.speed_class(slug, pool.model.slug): speeds
        for slug, speeds in priors.items()
        if speeds is not None
    }
    known = [row for row in endpoints if priors[row.workload.accelerator.model.slug] is not None]
    prices = _prices([row.workload.accelerator_id for row in known])
    keys = tenancy.live_inference_keys(documents.names_of(pool.model.slug, pool.rewrites))
    return documents.PoolFacts(
        slug=pool.slug,
        role_mode=pool.role_mode,
        currency=pool.currency or None,
        model=pool.model.slug,
        revision=pool.model.revision or None,
        max_model_len=pool.model.max_model_len,
        policy=pool.policy,
        policy_parameters=pool.policy_parameters,
        recording=pool.recording,
        slo_ttft_seconds=pool.slo_ttft_p95_seconds,
        slo_tpot_seconds=pool.slo_tpot_p95_seconds,
        admission=pool.admission,
        objectives=pool.objectives,
        rewrites=pool.rewrites,
        ramp_seconds=pool.ramp_seconds,
        speed_classes=classes,
        endpoints=[_endpoint(row, pool, prices) for row in known],
        keys=[
            documents.KeyFacts(
                id=str(key.pk), sha256=key.sha256, tenant=key.tenant.slug,
                project=key.project.slug, models=key.models,
                expires_at=key.expires_at.timestamp() if key.expires_at else None,
                highest_priority=key.highest_priority,
            )
            for key in keys
        ],
        tenants={key.tenant.slug: sorted(key.tenant.jurisdictions) for key in keys},
    )  # fmt: skip


def document_of(row: PoolDocument) -> Document:
    """The stored document, decoded."""
    return documents.parse_document(row.content.encode())


def _endpoint(
    row: Endpoint, pool: Pool, prices: Mapping[UUID, Decimal | None]
) -> documents.EndpointFacts:
    accelerator, site = row.workload.accelerator, row.node.cluster.site
    return documents.EndpointFacts(
        id=row.workload.name,
        url=row.url,
        instance=row.instance,
        engine=row.engine,
        role=row.role,
        draining=row.state == State.DRAINING,
        vendor=accelerator.vendor,
        speed_class=figures.speed_class(accelerator.model.slug, pool.model.slug),
        node=row.node.hostname,
        site=site.slug,
        jurisdiction=site.jurisdiction or None,
        kv_capacity_tokens=row.kv_capacity_tokens or None,
        block_size_tokens=row.block_size_tokens,
        max_model_len=row.max_model_len,
        kv_contract=row.kv_contract,
        price_per_hour=prices.get(accelerator.pk),
    )


def _prices(accelerator_ids: Sequence[UUID]) -> Mapping[UUID, Decimal | None]:
    """Cost per hour from the function that settings name; none named, none known."""
    path = getattr(settings, "ENDPOINT_PRICES", "")
    if not path or not accelerator_ids:
        return {}
    prices: Prices = import_string(path)
    return prices(accelerator_ids)
