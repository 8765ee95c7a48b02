"""Where a fault is."""

from django.core.exceptions import ValidationError
from rest_framework import exceptions

from controlplane.api import pointers


def test_nested_details_become_json_pointers() -> None:
    detail = exceptions.ValidationError(
        {"spec": {"a/b": ["No."]}, "items": [{}, {"serial": ["Twice."]}], "tags": ["x", "y"],
         "non_field_errors": ["Whole."]},
    ).detail  # fmt: skip

    found = [(fault["pointer"], fault["detail"]) for fault in pointers.of_detail(detail)]

    assert found == [
        ("#/spec/a~1b", "No."), ("#/items/1/serial", "Twice."), ("#/tags", "x"), ("#/tags", "y"),
        ("#", "Whole."),
    ]  # fmt: skip


def test_the_code_of_a_fault_stays() -> None:
    detail = exceptions.ValidationError({"a": [exceptions.ErrorDetail("No.", "choice")]}).detail

    assert pointers.of_detail(detail)[0]["code"] == "choice"


def test_errors_of_models_point_at_fields_or_at_the_whole() -> None:
    of_fields = ValidationError({"slug": ValidationError("Taken.", code="unique")})

    assert pointers.of_messages(of_fields) == [
        {"pointer": "#/slug", "code": "unique", "detail": "Taken."}
    ]
    assert pointers.of_messages(ValidationError("Whole."))[0]["pointer"] == "#"
