"""Models and pools: create, load from the shipped facts."""

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import jobs, permissions
from controlplane.operations import outbox
from controlplane.serving import facts, presets
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineArgumentError, check_arguments
from controlplane.serving.errors import EngineArgumentsRefusedError, ModelUnknownError
from controlplane.serving.models import Model, Pool
from controlplane.serving.services.pool_settings import check_settings

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


@transaction.atomic
def create_model(*, actor: "User | None", **fields: Any) -> Model:
    """Add a model with its shape. Raises ValidationError that names the field."""
    if actor is not None:
        permissions.require(actor, "serving.add_model")
    model = Model(**fields)
    model.full_clean()
    model.save(force_insert=True)
    audit.record(actor=actor, action="model.create", subject=model, after={"slug": model.slug})
    return model


@transaction.atomic
def load_catalogue(*slugs: str) -> list[Model]:
    """Bring models of the shipped catalogue up to date, all of them when none is named.

    Presets are loaded by their names, too. Figures that somebody changed here are set back to the
    shipped ones. Raises ModelUnknownError.
    """
    shipped = _shipped_models()
    unknown = sorted(set(slugs) - set(shipped))
    if unknown:
        raise ModelUnknownError(model=unknown[0], allowed=", ".join(sorted(shipped)))
    models = []
    named = {row["slug"] for row in facts.load("models")["models"]}
    for slug in slugs or sorted(named):
        row = dict(shipped[slug])
        model, _created = Model.objects.update_or_create(slug=row.pop("slug"), defaults=row)
        models.append(model)
    return models


def _shipped_models() -> dict[str, dict[str, Any]]:
    """Rows of the catalogue, and of presets whose figures are all known."""
    sources = facts.load("models")["sources"]
    rows = {
        slug: fields
        for slug, preset in presets.presets().items()
        if (fields := presets.model_fields(preset)) is not None
    }
    return rows | {
        row["slug"]: row | {"source": sources[row["source"]][:300]}
        for row in facts.load("models")["models"]
    }


@transaction.atomic
def create_pool(*, actor: "User | None", **fields: Any) -> Pool:
    """Add a pool without engines; roles come by change plans.

    Raises ValidationError, PolicyRefusedError, SloRefusedError, GatewayRulesRefusedError or
    EngineArgumentsRefusedError.
    """
    if actor is not None:
        permissions.require(actor, "serving.add_pool")
    pool = Pool(**fields)
    pool.full_clean()
    check_settings(pool)
    _check_engine_arguments(pool)
    pool.save(force_insert=True)
    audit.record(actor=actor, action="pool.create", subject=pool, after={"slug": pool.slug})
    outbox.emit("consort.pool.created", subject=pool)
    jobs.after_commit("serving.tasks.reconcile_pool", str(pool.pk))
    return pool


def _check_engine_arguments(pool: Pool) -> None:
    try:
        check_arguments(launcher(pool.engine), pool.engine_arguments)
    except EngineArgumentError as error:
        raise EngineArgumentsRefusedError(detail=str(error)) from error
