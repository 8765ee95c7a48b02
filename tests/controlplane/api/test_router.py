"""What every registered resource has."""

import re
import uuid

import pytest
from rest_framework.viewsets import GenericViewSet

from controlplane.api.resource import ResourceBehaviour
from controlplane.api.router import Router, router
from tests.factories import make_admin, make_api_client

RESOURCES = [pytest.param(prefix, view, id=prefix) for prefix, view, _name in router.registry]


class Echo(GenericViewSet):
    """Says nothing."""

    permission_classes = []


@pytest.mark.parametrize(("prefix", "viewset"), RESOURCES)
def test_a_resource_has_a_plural_name_and_the_common_behaviour(
    prefix: str, viewset: type[GenericViewSet]
) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*(/[a-z]+(-[a-z]+)*)?", prefix)
    assert issubclass(viewset, ResourceBehaviour)
    assert viewset.__doc__


def test_the_viewset_itself_stays_as_it_is() -> None:
    own = Router()

    own.resource("echoes", Echo)

    served = own.registry[0][1]
    assert served is not Echo
    assert served.__name__ == "Echo"
    assert served.permission_classes == []
    assert not issubclass(Echo, ResourceBehaviour)


def test_no_name_is_taken_twice() -> None:
    names = [prefix for prefix, _view, _name in router.registry]

    assert len(names) == len(set(names))


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_cache")
@pytest.mark.parametrize(("prefix", "viewset"), RESOURCES)
def test_a_list_answers_who_may_see_it(prefix: str, viewset: type[GenericViewSet]) -> None:
    response = make_api_client(make_admin()).get(f"/api/v1/{prefix}")

    if hasattr(viewset, "list"):
        # 400 and 422: a parameter without which there is no answer, such as a period.
        assert response.status_code in {200, 400, 422}, response.content
    else:
        assert response.status_code == 405


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_cache")
@pytest.mark.parametrize(("prefix", "viewset"), RESOURCES)
def test_what_was_never_there_is_not_found(prefix: str, viewset: type[GenericViewSet]) -> None:
    response = make_api_client(make_admin()).get(f"/api/v1/{prefix}/{uuid.uuid4()}")

    assert (response.status_code, response.json()["status"]) in {(404, 404), (405, 405)}
