from routing.core.document import document_schema
from routing.core.refusals import refusal


def test_an_unknown_field_is_refused_with_its_pointer_and_the_nearest_known_name() -> None:
    found = refusal("Object contains unknown field `tenent` - at `$.keys[0]`", document_schema())

    assert found.pointer == "/keys/0/tenent"
    assert "Did you mean 'tenant'?" in found.message
    assert "sha256" in found.allowed


def test_another_complaint_keeps_its_words_and_gets_a_pointer() -> None:
    found = refusal("Expected `int`, got `str` - at `$.version`", document_schema())

    assert (found.pointer, found.message) == ("/version", "Expected `int`, got `str`.")
