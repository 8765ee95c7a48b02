"""Only prefill and decode endpoints of one pool are pairs, and only for people of the fleet."""

import pytest

from controlplane.decisions import selectors
from controlplane.serving.models import Endpoint
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_ana, make_olga

pytestmark = pytest.mark.django_db
CONTRACT = {"engine": "vllm", "engine_version": "1"}


def test_pairs_are_within_a_pool_and_hidden_from_tenants() -> None:
    prefill = make_endpoint(role="prefill", kv_contract=CONTRACT)
    make_endpoint(prefill.pool, role="decode", kv_contract=CONTRACT)
    make_endpoint(role="decode", kv_contract=CONTRACT)
    Endpoint.objects.update(state="ready")

    (pair,) = selectors.pairs_for_viewer(make_olga())

    assert (pair.prefill, pair.verdict) == (prefill.workload.name, "unknown")
    assert "kv_dtype" in pair.missing
    assert selectors.pairs_for_viewer(make_ana()) == []
    assert selectors.pairs_for_viewer(make_olga(), pool="other") == []
