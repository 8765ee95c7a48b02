"""Stored reasons in a person's language."""

from controlplane.planning.telling import sentences

REASONS = [{"code": "spare", "numbers": {"share": 0.4, "bound": 20.0}}, {"code": "new"}]


def test_korean_is_spoken_and_everything_else_is_english() -> None:
    assert "40 %" in sentences(REASONS, "en")[0]
    assert "추정 용량" in sentences(REASONS, "ko")[0]
    assert sentences(REASONS, "fr") == sentences(REASONS, None)
    assert sentences(REASONS, "ko")[1] == "new"
