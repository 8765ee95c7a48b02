"""Routers that can be asked: in use, heard lately, with the pool and a token at hand."""

from pathlib import Path

import pytest
from django.utils import timezone

from controlplane.decisions import selectors
from controlplane.serving.models import Router
from tests.controlplane.decisions.records import document, store_document

pytestmark = pytest.mark.django_db


def make_router(name: str, token: str, **overrides: object) -> Router:
    values = {
        "admin_url": f"http://{name}", "public_url": f"http://{name}", "token_reference": token,
        "heard_at": timezone.now(), "documents": {"chat": {"version": 1}},
    }  # fmt: skip
    return Router.objects.create(name=name, **(values | overrides))


def test_routers_without_a_token_or_out_of_use_are_not_asked(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    make_router("a", "env:NO_SUCH_VARIABLE")
    make_router("b", f"file:{token}")
    make_router("c", f"file:{token}", enabled=False)

    (port,) = selectors.router_ports()

    assert (port.name, port.token) == ("b", "secret")
    found = selectors.port_with_pool("chat")
    assert found is not None
    assert found.name == "b"
    assert selectors.port_with_pool("other") is None


def test_a_router_that_was_not_heard_lately_is_not_asked() -> None:
    make_router("a", "env:PATH", heard_at=None)

    assert selectors.port_with_pool("chat") is None


def test_the_content_of_a_version_is_found() -> None:
    store_document(document())

    assert selectors.document_content("chat", 1) is not None
    assert selectors.document_content("chat", 9) is None
