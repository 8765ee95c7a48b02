"""Bodies that viewsets take, and rows as they answer them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from controlplane.common.http import ApiRequest
from controlplane.common.reads import Reads
from controlplane.tenancy.models import Organisation


class Body(serializers.Serializer[Any]):
    name = serializers.CharField()


class Output(serializers.ModelSerializer[Organisation]):
    class Meta:
        model = Organisation
        fields = ["name"]


class Resource(Reads):
    serializer_class = Output

    def get_queryset(self) -> QuerySet[Organisation]:
        return Organisation.objects.all()


def view(body: dict[str, Any]) -> Resource:
    made = Resource(format_kwarg=None)
    sent = APIRequestFactory().post("/", body, format="json")
    made.request = cast(ApiRequest, Request(sent, parsers=made.get_parsers()))
    return made


def test_a_body_is_taken_as_its_serializer_reads_it() -> None:
    assert view({"name": " a ", "other": 1}).read(Body) == {"name": "a"}


def test_a_body_that_does_not_fit_is_refused() -> None:
    with pytest.raises(serializers.ValidationError):
        view({}).read(Body)


@pytest.mark.django_db
@pytest.mark.parametrize(("created", "code"), [(True, 201), (False, 200)])
def test_a_row_is_answered_as_it_is_stored(created: bool, code: int) -> None:
    row = Organisation.objects.create(slug="a", name="stored")

    answer = view({}).answer(SimpleNamespace(pk=row.pk), created=created)

    assert (answer.status_code, answer.data) == (code, {"name": "stored"})
