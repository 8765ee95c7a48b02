"""The pool document: accepted as a whole or refused with a pointer and what is allowed."""

import copy
import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from routing.core.document import (
    MAX_DOCUMENT_BYTES,
    DocumentError,
    PoolDocument,
    document_schema,
    encode_document,
    parse_document,
)
from tests.routing.pool.builders import SPEED, document_dict, endpoint_dict


def full() -> dict[str, Any]:
    """A document that uses every part."""
    return document_dict(
        endpoint_dict("p", role="prefill", price_per_hour="3.07", ramp_seconds=30),
        endpoint_dict("d", role="decode", max_model_len=9216, state="draining"),
        currency="USD",
        models=[
            {"name": "granite", "max_model_len": 9216, "revision": "r1"},
            {"name": "granite-ko", "max_model_len": 9216, "adapter_of": "granite"},
        ],
        policy={"name": "consort", "parameters": {"harm_weight": 1, "tie_share": 0.05}},
        tenants=[{"tenant": "a", "concurrency": 8, "jurisdictions": ["KR"]}],
        keys=[{"id": "k", "sha256": "0" * 64, "tenant": "a", "project": "p", "models": None}],
        disaggregation={"allow_staging": False},
        limits={"attempts": 2},
    )


def refused(document: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        parse_document(json.dumps(document).encode())
    return caught.value


def test_a_full_document_is_read() -> None:
    document = parse_document(json.dumps(full()).encode())

    assert [endpoint.role for endpoint in document.endpoints] == ["prefill", "decode"]
    assert document.policy.parameters.capacity_weight == 10.0


def test_encoding_and_reading_again_gives_the_same_document_and_bytes() -> None:
    document = parse_document(json.dumps(full()).encode())

    again = parse_document(encode_document(document))

    assert again == document
    assert encode_document(again) == encode_document(document)


@pytest.mark.parametrize(
    ("path", "name", "near"),
    [
        pytest.param([], "endpoint", "endpoints", id="top"),
        pytest.param(["endpoints", 0], "jurisdicton", "jurisdiction", id="endpoint"),
        pytest.param(
            ["endpoints", 1, "kv_contract"], "attention_backed", "attention_backend", id="contract"
        ),
        pytest.param(["policy", "parameters"], "harm_wieght", "harm_weight", id="parameters"),
        pytest.param(["limits"], "attempt", "attempts", id="limits"),
        pytest.param(["keys", 0], "sha265", "sha256", id="key"),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest_name(
    path: list[str | int], name: str, near: str
) -> None:
    document = full()
    part: Any = document
    for step in path:
        part = part[step]
    part[name] = 1

    error = refused(document)

    assert error.message == f"Unknown field '{name}'. Did you mean '{near}'?"
    assert error.pointer == "".join(f"/{step}" for step in [*path, name])
    assert near in error.allowed


def test_an_unknown_field_near_nothing_has_no_guess() -> None:
    error = refused(full() | {"zzzzzz": 1})

    assert error.message == "Unknown field 'zzzzzz'."
    assert "endpoints" in error.allowed


@pytest.mark.parametrize(
    ("change", "pointer", "words"),
    [
        pytest.param({"version": 0}, "/version", "Expected `int` >= 1", id="number-range"),
        pytest.param({"version": "1"}, "/version", "Expected `int`, got `str`", id="type"),
        pytest.param({"role_mode": "split"}, "/role_mode", "'split'", id="choice"),
        pytest.param({"schema_version": 2}, "/schema_version", "2", id="schema-version"),
        pytest.param({"models": []}, "/models", "length >= 1", id="no-model"),
        pytest.param({"currency": "usd"}, "/currency", "regex", id="currency"),
        pytest.param({"policy": {"name": "best"}}, "/policy/name", "'best'", id="policy"),
        pytest.param(
            {"prompt_identity": {"chunk_bytes": 1}},
            "/prompt_identity/chunk_bytes",
            "16",
            id="chunk",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_a_pointer(
    change: dict[str, Any], pointer: str, words: str
) -> None:
    error = refused(full() | change)

    assert error.pointer == pointer
    assert words in error.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "https://10.0.0.1:8000"),
        ("url", "http://10.0.0.1:8000/v1"),
        ("url", "http://10.0.0.1:99999"),
        ("url", "http://10.0.0.1:0"),
        ("url", "http://10.0.0.1:port"),
        ("url", "http://:8000"),
        ("url", "http://[::1"),
        ("url", "http://user:secret@10.0.0.1:8000"),
        ("url", "http://10.0.0.1:8000?x=1"),
        pytest.param("kv_capacity_tokens", 10**400, id="capacity-beyond-any-float"),
        pytest.param("price_per_hour", "9" * 400, id="price-beyond-any-float"),
        ("role", "encode"),
        ("state", "gone"),
        ("price_per_hour", "-1"),
        ("price_per_hour", 3.07),
        ("kv_capacity_tokens", 0),
        ("id", ""),
    ],
)
def test_an_endpoint_with_a_wrong_value_is_refused(field: str, value: Any) -> None:
    document = document_dict(endpoint_dict("a"))
    document["endpoints"][0][field] = value

    error = refused(document)

    assert error.pointer == f"/endpoints/0/{field}"


def test_a_missing_field_is_refused_by_name() -> None:
    document = full()
    del document["author"]

    assert "missing required field `author`" in refused(document).message


@pytest.mark.parametrize(
    ("part", "field"),
    [("endpoints", "id"), ("endpoints", "url"), ("models", "name"), ("keys", "sha256"),
     ("tenants", "tenant")],
)  # fmt: skip
def test_what_identifies_is_used_once(part: str, field: str) -> None:
    document = full()
    document[part] = [*document[part][:1], copy.deepcopy(document[part][0])]
    if part == "endpoints":
        other = "url" if field == "id" else "id"
        document[part][1][other] = f"http://other:{1}" if other == "url" else "other"

    error = refused(document)

    assert error.pointer == f"/{part}/1/{field}"
    assert "stands at position 0 already" in error.message


def test_a_speed_class_must_exist() -> None:
    document = document_dict(endpoint_dict("a", speed_class="fats"))

    error = refused(document)

    assert error.pointer == "/endpoints/0/speed_class"
    assert error.allowed == ("fast", "slow")


def test_a_unified_pool_has_no_split_roles() -> None:
    document = document_dict(
        endpoint_dict("a"), endpoint_dict("b", role="decode"), role_mode="unified"
    )

    error = refused(document)

    assert error.pointer == "/endpoints/1/role"
    assert error.allowed == ("both",)


def test_an_adapter_needs_its_base_model() -> None:
    models = [{"name": "granite-ko", "max_model_len": 1, "adapter_of": "granite"}]

    error = refused(document_dict(endpoint_dict("a"), models=models))

    assert error.pointer == "/models/0/adapter_of"


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"pool": '])
def test_what_is_not_json_is_refused(raw: bytes) -> None:
    with pytest.raises(DocumentError, match="not JSON"):
        parse_document(raw)


def test_a_document_that_is_too_large_is_not_even_decoded() -> None:
    with pytest.raises(DocumentError, match=f"at most {MAX_DOCUMENT_BYTES}"):
        parse_document(b" " * (MAX_DOCUMENT_BYTES + 1))


def test_documents_cannot_be_changed() -> None:
    document = parse_document(json.dumps(full()).encode())

    with pytest.raises(AttributeError):
        document.version = 2  # type: ignore[misc]


def test_the_schema_describes_what_is_read() -> None:
    schema = document_schema()

    assert schema["$ref"] == "#/$defs/PoolDocument"
    top = schema["$defs"]["PoolDocument"]
    assert set(top["properties"]) == set(PoolDocument.__struct_fields__)
    assert top["additionalProperties"] is False
    assert set(full()) <= set(top["properties"])
    assert {"pool", "version", "models", "endpoints"} <= set(top["required"])


def test_every_reference_of_the_schema_has_its_definition() -> None:
    schema = document_schema()
    text = json.dumps(schema)

    found = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}

    assert found == set(schema["$defs"])


@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_any_bytes_give_a_refusal_that_is_a_sentence(raw: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(raw)

    assert caught.value.message.endswith(".")


@settings(deadline=None)
@given(
    name=st.sampled_from(sorted(SPEED)),
    value=st.sampled_from([None, -1, "x", [], {}, float("1e400")]),
)
def test_a_broken_speed_is_refused_at_its_field(name: str, value: Any) -> None:
    document = full()
    document["speed_classes"] = {"fast": SPEED | {name: value}, "slow": SPEED}
    raw = json.dumps(document).replace("Infinity", "1e400").encode()

    with pytest.raises(DocumentError):
        parse_document(raw)


def test_keys_carry_no_secret() -> None:
    fields = msgspec.structs.fields(PoolDocument)

    keys = next(field for field in fields if field.name == "keys")

    assert "secret" not in str(keys.type).lower()
