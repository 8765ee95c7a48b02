"""llm-d's own weights as a policy, and its configuration under a name that follows its content."""

from dataclasses import replace

import pytest

from controlplane.serving.renderers import _picker
from controlplane.serving.renderers.base import RenderRefusedError
from routing.core.document import Admission
from tests.controlplane.serving.renderers.golden_cases import layout_of

LAYOUT = layout_of("nvidia", "vllm", ("both",))


def test_llm_ds_own_weights_are_those_of_its_documentation() -> None:
    (profile,) = _picker.llmd_default(disaggregated=False).profiles

    weights = {one.type: one.weight for one in profile.plugins if one.type.endswith("scorer")}
    assert weights == {
        "queue-scorer": 2, "kv-cache-utilization-scorer": 2, "prefix-cache-scorer": 3,
    }  # fmt: skip


def test_an_admission_without_a_counterpart_is_refused_with_its_field() -> None:
    layout = replace(LAYOUT, admission=Admission(saturation_seconds=5.0))

    with pytest.raises(RenderRefusedError) as refusal:
        _picker.picker_config(layout)

    assert refusal.value.field.startswith("admission.")


def test_a_long_name_keeps_its_hash() -> None:
    one, other = _picker.with_hash("n" * 90, "a"), _picker.with_hash("n" * 90, "b")

    assert one != other
    assert max(len(one), len(other)) <= 63
