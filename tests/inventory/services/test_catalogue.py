"""The figures that ship arrive in the catalogue, and again without harm."""

import pytest

from controlplane.common.permissions import NotPermittedError
from inventory import services
from inventory.facts import loading
from inventory.models import AcceleratorModel
from tests.factories import make_ben
from tests.inventory.factories import make_node

pytestmark = pytest.mark.django_db


def test_every_model_that_ships_is_loaded_with_figures_and_sources() -> None:
    count = services.load_catalogue()

    assert AcceleratorModel.objects.count() == count == len(loading.accelerators())
    model = AcceleratorModel.objects.get(slug="amd-mi325x")
    assert (model.vendor, model.memory_bytes, model.tdp_watts) == ("amd", 256 * 10**9, 1000)
    assert model.figures["memory_bytes"]["confidence"] == "secondary"
    assert model.figures["memory_bytes"]["source"]


def test_a_figure_that_nobody_published_is_none() -> None:
    services.load_catalogue()

    assert AcceleratorModel.objects.get(slug="huawei-ascend-910b").fp8_tflops is None


def test_loading_again_keeps_ids_and_what_points_at_them() -> None:
    node = make_node()
    before = node.node_type.accelerator_model_id

    services.load_catalogue()
    services.load_catalogue()

    model = AcceleratorModel.objects.get(slug="amd-mi325x")
    assert model.pk == before
    assert model.bf16_tflops == 1307


def test_ben_loads_nothing() -> None:
    with pytest.raises(NotPermittedError):
        services.load_catalogue(actor=make_ben())
