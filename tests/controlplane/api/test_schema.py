"""The OpenAPI document."""

import pytest
import yaml
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver

from controlplane.config.embedded.places import PROJECT
from tests.factories import make_api_client

pytestmark = pytest.mark.xdist_group("schema")
"""One document for all tests: making it takes seconds."""
COMMITTED = PROJECT / "docs" / "openapi.yaml"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """The document as the code makes it."""
    file = tmp_path_factory.mktemp("schema") / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    return yaml.safe_load(file.read_text())


def _operations(schema: dict) -> list[tuple[str, str, dict]]:
    return [
        (path, method, operation)
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    ]


def test_the_committed_document_is_that_of_the_code(schema: dict) -> None:
    assert yaml.safe_load(COMMITTED.read_text()) == schema, "run 'make schema'"


def test_every_operation_answers_errors_with_problem_documents(schema: dict) -> None:
    for path, method, operation in _operations(schema):
        content = operation["responses"]["default"]["content"]
        assert "application/problem+json" in content, (method, path)


def test_every_operation_has_a_name_of_its_own(schema: dict) -> None:
    names = [operation["operationId"] for _path, _method, operation in _operations(schema)]

    assert len(names) == len(set(names))


def test_what_creates_something_needs_a_key(schema: dict) -> None:
    create = schema["paths"]["/api/v1/organisations"]["post"]

    required = {p["name"] for p in create["parameters"] if p.get("required")}
    assert required == {"Idempotency-Key"}


def test_what_changes_a_tenant_needs_a_version(schema: dict) -> None:
    change = schema["paths"]["/api/v1/tenants/{id}"]["patch"]

    assert "If-Match" in {p["name"] for p in change["parameters"] if p.get("required")}


def test_no_money_is_a_float(schema: dict) -> None:
    for name, component in schema["components"]["schemas"].items():
        for field, form in component.get("properties", {}).items():
            if "amount" in field or "cost" in field:
                assert form.get("type") != "number", (name, field)


def test_every_address_of_the_api_is_in_the_document(schema: dict) -> None:
    assert len(schema["paths"]) >= len(_resources(get_resolver()))


@pytest.mark.django_db
def test_the_document_is_served_to_everybody() -> None:
    response = make_api_client().get("/api/v1/schema")

    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/vnd.oai.openapi")


def _resources(resolver: URLResolver) -> set[str]:
    found: set[str] = set()
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            found |= _resources(pattern)
        elif isinstance(pattern, URLPattern) and (pattern.name or "").endswith("-list"):
            found.add(str(pattern.name))
    return found
