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
