"""What was refused during a request."""

from controlplane.common import denials

DENIAL = denials.Denial(actor=None, action="x", subject=None)


def test_outside_of_a_request_nothing_is_kept() -> None:
    denials.note(DENIAL)

    with denials.collected() as refused:
        pass

    assert refused == []


def test_the_list_is_bounded() -> None:
    with denials.collected() as refused:
        for _ in range(denials.LIMIT + 1):
            denials.note(DENIAL)

    assert len(refused) == denials.LIMIT
