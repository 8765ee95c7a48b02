"""The id of the current work."""

from controlplane.common import request_id


def test_the_inner_id_holds_inside_only() -> None:
    with request_id.bound("outer"):
        with request_id.bound("inner"):
            assert request_id.current() == "inner"
        assert request_id.current() == "outer"

    assert request_id.current() == ""
