"""What every page knows."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from pytest_django import DjangoAssertNumQueries

from controlplane.console import context
from controlplane.operations.models import Operation
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


def test_the_frame_asks_for_nothing_that_is_not_shown(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    request = RequestFactory().get("/")
    request.user = make_olga()

    with django_assert_num_queries(0):
        frame = context.frame(request)

    assert frame["theme"] == "system"
    assert frame["language"] == "en"
    assert frame["other_languages"] == [("ko", "Korean")]


def test_running_operations_are_counted_for_the_person() -> None:
    olga = make_olga()
    Operation.objects.create(kind="k", task="t", created_by=olga)
    request = RequestFactory().get("/")
    request.user = olga

    assert context.frame(request)["running_operations"] == 1

    request.user = AnonymousUser()

    assert context.frame(request)["running_operations"] == 0
