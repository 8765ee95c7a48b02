"""Where work comes from."""

from controlplane.common import origin


def test_a_credential_refines_the_origin_and_keeps_the_address() -> None:
    with origin.bound(origin.Origin(address="203.0.113.7")):
        origin.refine(kind="token", auth_method="api-token")

        assert origin.current() == origin.Origin("token", "api-token", "203.0.113.7")

    assert origin.current() == origin.Origin()


def test_without_a_request_nothing_is_refined() -> None:
    origin.refine(kind="user", auth_method="session")

    assert origin.current() == origin.Origin()
