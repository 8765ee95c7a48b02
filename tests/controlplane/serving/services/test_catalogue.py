"""Models and pools."""

import pytest
from django.core.exceptions import ValidationError

from controlplane.common.permissions import NotPermittedError
from controlplane.serving import services
from controlplane.serving.errors import (
    EngineArgumentsRefusedError,
    ModelUnknownError,
    SloRefusedError,
)
from controlplane.serving.models import Model, Pool
from tests.controlplane.serving.factories import make_pool, make_serving_model
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


def test_the_shipped_catalogue_loads_with_a_source_for_each_model() -> None:
    models = services.load_catalogue()

    assert len(models) == Model.objects.count() >= 10
    assert all(model.source and model.confidence for model in models)
    granite = Model.objects.get(slug="granite-4.1-8b")
    # 40 layers x 2 x 8 KV heads x 128 x 2 bytes.
    assert granite.kv_bytes_per_token == 163_840


def test_loading_again_sets_figures_back_and_adds_nothing() -> None:
    make_serving_model(layers=1)

    services.load_catalogue("granite-4.1-8b")

    assert Model.objects.get().layers == 40


def test_a_model_that_is_not_shipped_is_refused_with_those_that_are() -> None:
    with pytest.raises(ModelUnknownError, match="no model gpt-9") as refused:
        services.load_catalogue("gpt-9")

    assert "granite-4.1-8b" in str(refused.value.facts["allowed"])


def test_a_misspelt_engine_argument_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(EngineArgumentsRefusedError, match="Did you mean 'speed'"):
        make_pool(engine_arguments={"sped": 4})

    assert not Pool.objects.exists()


def test_a_pool_with_a_wrong_field_is_refused_by_its_name() -> None:
    with pytest.raises(ValidationError) as refused:
        make_pool(slug="Not a slug", slo_ttft_p95_seconds=-1)

    assert set(refused.value.message_dict) >= {"slug", "slo_ttft_p95_seconds"}


def test_a_new_pool_nudges_its_loop(
    sent_tasks: list[object], django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        pool = make_pool()

    assert ("controlplane.serving.tasks.reconcile_pool", (str(pool.pk),)) in sent_tasks


def test_people_of_a_tenant_add_neither_models_nor_pools() -> None:
    model = make_serving_model()

    with pytest.raises(NotPermittedError):
        services.create_pool(actor=make_ben(), model=model, slug="x", name="x", role_mode="unified")
    with pytest.raises(NotPermittedError):
        services.create_model(actor=make_ben(), slug="x", name="x")


def test_a_model_of_ones_own_needs_every_figure() -> None:
    olga = make_olga()

    with pytest.raises(ValidationError) as refused:
        services.create_model(actor=olga, slug="own", name="Own", max_model_len=4096)

    assert {"layers", "weight_bytes", "flops_per_token"} <= set(refused.value.message_dict)


def test_a_new_pool_with_wrong_rules_of_waiting_is_refused() -> None:
    with pytest.raises(SloRefusedError, match="/admission/queue_seconds"):
        make_pool(admission={"queue_seconds": 0})

    assert not Pool.objects.exists()
