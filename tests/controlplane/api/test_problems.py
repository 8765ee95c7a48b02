"""Every error is a problem document."""

import uuid
from http import HTTPStatus

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import translation

from controlplane.api import problems
from controlplane.api.errors import TokenRevokedError, UnknownParameterError
from controlplane.tenancy.errors import TenantNotActiveError
from controlplane.tenancy.models import Tenant
from tests.factories import make_admin, make_ana, make_api_client, make_olga, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_a_rule_that_said_no_gives_its_code_and_facts() -> None:
    error = TenantNotActiveError(tenant="hanbit", state=Tenant.State.SUSPENDED)

    problem = problems.problem_of(error)

    assert problem["type"] == "/problems/tenant-not-active"
    assert problem["status"] == HTTPStatus.CONFLICT
    assert problem["detail"] == "Tenant hanbit is suspended, so this cannot be done."
    assert (problem["tenant"], problem["state"]) == ("hanbit", "suspended")


def test_the_hint_is_filled_with_facts() -> None:
    error = UnknownParameterError(parameter="sate", suggestion="", allowed="state, tenant")

    problem = problems.problem_of(error)

    assert problem["hint"] == "Allowed here: state, tenant."


def test_a_validation_error_of_a_model_points_at_the_field() -> None:
    problem = problems.problem_of(ValidationError({"slug": ["Too long."]}))

    assert problem["status"] == HTTPStatus.UNPROCESSABLE_ENTITY
    assert problem["errors"] == [{"pointer": "#/slug", "code": "invalid", "detail": "Too long."}]


def test_nothing_of_an_unexpected_error_is_told() -> None:
    problem = problems.problem_of(RuntimeError("password=hunter2"))

    assert problem["code"] == "internal-error"
    assert "hunter2" not in str(problem)


def test_an_unknown_address_is_a_problem(client: Client) -> None:
    response = client.get("/api/v1/nothing-here")

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not-found"


def test_the_instance_is_the_request_id(client: Client) -> None:
    identifier = str(uuid.uuid4())

    response = client.get("/api/v1/nothing-here", headers={"X-Request-Id": identifier})

    assert response["X-Request-Id"] == identifier
    assert response.json()["instance"] == f"urn:uuid:{identifier}"


def test_a_request_id_that_is_none_is_replaced(client: Client) -> None:
    response = client.get("/api/v1/nothing-here", headers={"X-Request-Id": "x" * 36})

    assert uuid.UUID(response["X-Request-Id"])


def test_without_a_credential_the_answer_says_how_to_give_one() -> None:
    response = make_api_client().get("/api/v1/tenants")

    assert response.status_code == HTTPStatus.UNAUTHORIZED
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["code"] == "not-authenticated"


def test_a_denial_names_the_permission_and_who_has_it() -> None:
    client = make_api_client(make_olga())

    response = client.get("/api/v1/audit-entries")

    body = response.json()
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert body["needs"] == {"action": "audit.view_auditentry", "object_type": None}
    assert "auditor" in body["ask"]


@pytest.mark.parametrize(
    ("method", "options", "status", "code"),
    [
        ("put", {"data": {}, "format": "json"}, 405, "method-not-allowed"),
        ("get", {"HTTP_ACCEPT": "text/csv"}, 406, "not-acceptable"),
        ("post", {"data": "a=1", "content_type": "text/plain"}, 415, "unsupported-media-type"),
        ("post", {"data": "{", "content_type": "application/json"}, 400, "malformed-json"),
        ("post", {"data": '{"a":1,"a":2}', "content_type": "application/json"}, 400,
         "malformed-json"),
        ("post", {"data": '{"a":NaN}', "content_type": "application/json"}, 400, "malformed-json"),
        ("post", {"data": "[" * 5000, "content_type": "application/json"}, 400, "malformed-json"),
        ("post", {"data": b'"\xff"', "content_type": "application/json"}, 400, "malformed-json"),
        ("post", {"data": " " * (1024 * 1024 + 1), "content_type": "application/json"}, 413,
         "body-too-large"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_its_code(
    method: str, options: dict[str, object], status: int, code: str
) -> None:
    client = make_api_client(make_admin())

    response = getattr(client, method)(
        "/api/v1/tenants", headers={"Idempotency-Key": "key-12345"}, **options
    )

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == code


def test_a_misspelt_parameter_is_refused_with_a_suggestion() -> None:
    client = make_api_client(make_admin())

    response = client.get("/api/v1/tenants?sate=active")

    body = response.json()
    assert (response.status_code, body["code"]) == (400, "unknown-parameter")
    assert "Did you mean 'state'?" in body["detail"]
    assert "organisation" in body["hint"]


def test_a_value_that_is_no_choice_is_refused_with_the_choices() -> None:
    client = make_api_client(make_admin())

    response = client.get("/api/v1/tenants?state=happy")

    body = response.json()
    assert (response.status_code, body["code"]) == (400, "invalid-parameter")
    assert "suspended" in body["hint"]


def test_a_misspelt_member_is_refused_with_a_suggestion() -> None:
    client = make_api_client(make_admin())

    response = client.post(
        "/api/v1/organisations", {"slug": "a", "nmae": "A"}, format="json",
        headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip

    body = response.json()
    assert (response.status_code, body["code"]) == (422, "validation-failed")
    assert body["errors"][0]["pointer"] == "#/nmae"
    assert "Did you mean 'name'?" in body["errors"][0]["detail"]


def test_a_row_of_another_tenant_does_not_exist() -> None:
    client = make_api_client(make_ana())

    response = client.get(f"/api/v1/tenants/{make_tenant().pk}")

    assert response.status_code == HTTPStatus.NOT_FOUND


def test_words_follow_the_language_and_codes_do_not() -> None:
    with translation.override("ko"):
        problem = problems.problem_of(TokenRevokedError(prefix="cst_x"))

    assert problem["code"] == "token-revoked"


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_cache")
def test_the_detail_of_wrong_values_says_where_and_stays_short() -> None:
    client = make_api_client(make_admin())

    problem = client.post(
        "/api/v1/organisations", {f"member-{number}": 1 for number in range(9)}, format="json",
        headers={"Idempotency-Key": "key-12345"},
    ).json()  # fmt: skip

    assert problem["detail"].count("There is no member") == 5
    assert len(problem["errors"]) == 9
    assert problem["detail"].startswith(f"{problem['errors'][0]['pointer'][2:]}: ")
