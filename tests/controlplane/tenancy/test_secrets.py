"""Formats and digests."""

import hashlib

import pytest
from django.conf import settings
from django.test import override_settings

from controlplane.tenancy import secrets


@pytest.mark.parametrize("kind", [secrets.API_TOKEN, secrets.INFERENCE_KEY])
def test_a_secret_has_the_form_that_scanners_look_for(kind: str) -> None:
    prefix, secret = secrets.issue(kind)

    head, environment, short, rest = secret.split("_", 3)
    assert (head, environment, len(short), len(rest)) == (kind, settings.KEY_ENVIRONMENT, 8, 43)
    assert prefix == f"{head}_{environment}_{short}"
    assert secrets.prefix_of(secret, kind=kind) == prefix


def test_two_secrets_differ() -> None:
    assert len({secrets.issue("csk") for _ in range(100)}) == 100


def test_the_prefix_survives_underscores_in_the_random_part() -> None:
    secret = "cst_local_AbCdEf12_" + "_" * 43

    assert secrets.prefix_of(secret, kind="cst") == "cst_local_AbCdEf12"


@pytest.mark.parametrize("text", ["", "cst_", "csk_local_AbCdEf12_" + "a" * 43, "x" * 10_000])
def test_what_is_no_token_has_no_prefix(text: str) -> None:
    assert secrets.prefix_of(text, kind="cst") is None


def test_the_digest_of_a_key_is_what_a_router_computes() -> None:
    assert secrets.plain_sha256("csk_x") == hashlib.sha256(b"csk_x").hexdigest()


def test_each_pepper_gives_another_digest() -> None:
    with override_settings(TOKEN_PEPPERS={1: "a" * 32, 2: "b" * 32}):
        assert secrets.peppered("cst_x", version=1) != secrets.peppered("cst_x", version=2)
