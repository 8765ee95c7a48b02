"""A pool document for routers out of reach: a Secret whose name follows its content."""

import base64
from dataclasses import replace

import pytest

from controlplane.serving.renderers import renderer
from controlplane.serving.renderers.base import RenderRefusedError
from tests.controlplane.serving.renderers.groups import make_layout, refuse_unknown_fields


def test_the_document_is_a_secret_and_reads_back() -> None:
    (secret,) = renderer("router").render(make_layout(document=b'{"pool":"llama"}'))

    assert base64.b64decode(secret["data"]["document.json"]) == b'{"pool":"llama"}'
    assert secret["kind"] == "Secret"
    refuse_unknown_fields(secret)


def test_another_document_has_another_name() -> None:
    layout = make_layout(document=b"a")

    names = {
        renderer("router").render(one)[0]["metadata"]["name"]
        for one in (layout, replace(layout, document=b"b"))
    }

    assert len(names) == 2


@pytest.mark.parametrize(
    ("document", "sentence"), [(b"", "No document"), (b"x" * 2_000_000, "a Secret holds")]
)
def test_no_document_or_a_large_one_is_refused(document: bytes, sentence: str) -> None:
    with pytest.raises(RenderRefusedError, match=sentence):
        renderer("router").render(make_layout(document=document))
