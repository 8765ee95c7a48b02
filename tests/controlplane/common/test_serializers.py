"""What the API takes in."""

import pytest
from rest_framework import serializers

from controlplane.common.serializers import ReasonInput, StrictSerializer


class Cordon(StrictSerializer):
    reason = serializers.CharField()
    until = serializers.DateTimeField(required=False)


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ("raeson", "There is no member 'raeson'. Did you mean 'reason'?"),
        ("zzz", "There is no member 'zzz'. Allowed: reason, until."),
    ],
)
def test_an_unknown_member_is_refused(member: str, sentence: str) -> None:
    body = Cordon(data={"reason": "fan", member: 1})

    assert not body.is_valid()
    assert body.errors == {member: [sentence]}


def test_known_members_pass() -> None:
    body = Cordon(data={"reason": "fan"})

    assert body.is_valid()


def test_the_reason_of_the_api_is_the_reason_of_the_service() -> None:
    body = ReasonInput(data={"change_reason": "fan"})

    assert body.is_valid()
    assert body.validated_data == {"reason": "fan"}


class Colour(StrictSerializer):
    one = serializers.ChoiceField(["red", "green"])
    many = serializers.ListField(child=serializers.ChoiceField(["a", "b"]), required=False)


def test_a_choice_that_is_none_lists_the_choices() -> None:
    body = Colour(data={"one": "blue", "many": ["c"]})

    assert not body.is_valid()
    assert body.errors == {
        "one": ["'blue' is not possible here. Allowed: red, green."],
        "many": {0: ["'c' is not possible here. Allowed: a, b."]},
    }


@pytest.mark.parametrize("data", [{}, {"change_reason": ""}, {"change_reason": None}])
def test_a_reason_that_is_missing_is_asked_for(data: dict[str, str | None]) -> None:
    body = ReasonInput(data=data)

    assert not body.is_valid()
    assert body.errors == {"change_reason": ["This change needs a reason."]}
