"""What every registered resource has."""

import re

import pytest
from rest_framework.viewsets import GenericViewSet

from controlplane.api.resource import ResourceBehaviour
from controlplane.api.router import Router, router

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
