"""The side navigation shows what a person may open."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.urls import reverse

from controlplane.console import navigation
from controlplane.tenancy.models import User
from tests.factories import make_ana, make_olga, make_user

pytestmark = pytest.mark.django_db


def routes(user: User | AnonymousUser, path: str = "/") -> dict[str, bool]:
    request = RequestFactory().get(path)
    request.user = user
    return {
        link.page.route: link.current
        for _name, links in navigation.links(request)
        for link in links
    }


def test_an_operator_without_finance_sees_no_cost() -> None:
    found = routes(make_olga())

    assert "console:nodes" in found
    assert "console:cost" not in found


def test_finance_sees_cost_and_people_of_a_tenant_no_fleet() -> None:
    assert "console:cost" in routes(make_user(None, "finance"))
    own = ["console:overview", "console:decisions", "console:operations"]
    assert list(routes(make_ana())) == own
    assert routes(AnonymousUser()) == {}


def test_the_open_page_and_pages_below_it_are_marked() -> None:
    found = routes(make_olga(), reverse("console:nodes") + "/x")

    assert [route for route, current in found.items() if current] == ["console:nodes"]


def test_keys_are_unique() -> None:
    keys = [page.key for _name, pages in navigation.GROUPS for page in pages if page.key]

    assert len(keys) == len(set(keys))
