"""A site with every row that pages show, and clients of its people."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.tenancy.models import User
from tests.controlplane.console.scene import Scene, make_scene


@pytest.fixture
def scene(db: None) -> Scene:
    """The whole small site."""
    return make_scene()


@pytest.fixture
def client_of() -> Callable[..., Client]:
    """Make a browser of a signed-in person, with a language if one is given."""

    def make(user: User, language: str = "en") -> Client:
        User.objects.filter(pk=user.pk).update(language=language)
        client = Client()
        client.force_login(User.objects.get(pk=user.pk))
        return client

    return make
