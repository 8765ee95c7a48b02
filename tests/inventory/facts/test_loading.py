"""The files of facts that ship, and the refusal of wrong ones."""

import copy
from typing import Any

import pytest

from inventory.facts import loading
from inventory.facts.loading import FactsError
from inventory.vendors import vendors

SHIPPED = {
    "nvidia-h100-nvl", "nvidia-h100-sxm", "nvidia-h200-sxm", "nvidia-b200", "amd-mi300x",
    "amd-mi325x", "amd-mi355x", "intel-gaudi3", "intel-gaudi2", "huawei-ascend-910b",
    "huawei-ascend-910c", "furiosa-rngd", "rebellions-atom-max", "rebellions-atom-plus",
    "rebellions-rebel100",
}  # fmt: skip
WRONG: dict[str, Any] = {
    "sources": {"page": "a page"},
    "accelerator_models": [
        {
            "slug": "acme-1",
            "vendor": "acme",
            "name": "Acme 1",
            "reported_names": [],
            "figures": {
                "memory_bytes": {"value": 1, "source": "page", "confidence": "vendor"},
            },
        }
    ],
}


def test_the_models_of_six_vendors_ship() -> None:
    found = {facts.slug for facts in loading.accelerators()}

    assert found >= SHIPPED
    assert {facts.vendor for facts in loading.accelerators()} <= set(vendors())


def test_each_model_has_memory_bandwidth_and_power_with_a_source() -> None:
    for facts in loading.accelerators():
        for name in ("memory_bytes", "bandwidth_bytes_per_second", "tdp_watts"):
            assert facts.figures[name].source, f"{facts.slug}.{name}"
            assert facts.figures[name].value


def test_what_nobody_published_is_none() -> None:
    by_slug = {facts.slug: facts for facts in loading.accelerators()}

    assert by_slug["huawei-ascend-910b"].figures["fp8_tflops"].value is None


def test_a_name_that_a_tool_reports_leads_to_one_model() -> None:
    assert loading.model_by_reported_name()[("nvidia", "nvidia h100 nvl")] == "nvidia-h100-nvl"
    assert loading.model_by_reported_name()[("intel-gaudi", "hl-325l")] == "intel-gaudi3"


def test_what_exporters_offer_is_named_with_its_unit_and_the_rest_is_unknown() -> None:
    for slug, facts in loading.vendors().items():
        assert facts.exporter_port is None or facts.exporter_port > 0, slug
        assert facts.exporter or not facts.metrics, slug
    assert loading.vendors()["intel-gaudi"].metrics["power"].unit == "mW"
    assert loading.vendors()["google-tpu"].metrics["power"].name is None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        pytest.param({"value": 0}, r"acme-1\.memory_bytes: 0 is not above 0", id="zero"),
        pytest.param({"source": "nowhere"}, r"'nowhere' is not allowed", id="unknown-source"),
        pytest.param({"confidence": "sure"}, r"confidence: 'sure'", id="unknown-confidence"),
    ],
)
def test_a_wrong_figure_is_refused_with_its_place(change: dict[str, Any], place: str) -> None:
    content = copy.deepcopy(WRONG)
    content["accelerator_models"][0]["figures"]["memory_bytes"] |= change

    with pytest.raises(FactsError, match=place):
        loading.read_accelerators(content)


def test_an_unknown_figure_and_a_second_slug_are_refused() -> None:
    content = copy.deepcopy(WRONG)
    content["accelerator_models"] *= 2
    with pytest.raises(FactsError, match="listed twice: acme-1"):
        loading.read_accelerators(content)

    content["accelerator_models"][0]["figures"]["speed"] = {}
    with pytest.raises(FactsError, match="'speed' is not allowed"):
        loading.read_accelerators(content)


def test_every_vendor_of_the_facts_has_its_file() -> None:
    assert set(loading.vendors()) == set(vendors())


def test_classes_for_claims_come_with_their_driver() -> None:
    for facts in loading.vendors().values():
        assert bool(facts.device_classes) == (facts.dra_driver is not None)


def test_images_are_repositories_without_tags() -> None:
    images = [image for facts in loading.vendors().values() for image in facts.images]

    assert images
    assert all(":" not in image.rpartition("/")[2] for image in images)


def test_the_taint_of_tpus_is_tolerated() -> None:
    assert loading.vendors()["google-tpu"].tolerations == ("google.com/tpu",)
