"""Every error code has its words."""

from controlplane.console import problems


def test_every_code_has_a_title_and_says_what_to_do() -> None:
    catalogue = problems.catalogue()

    assert {"plan-own", "not-permitted", "rate-limited"} <= set(catalogue)
    assert [code for code, kind in catalogue.items() if not (kind.title and kind.message)] == []
    assert list(catalogue) == sorted(catalogue)
