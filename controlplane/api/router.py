"""Every resource of the API, one line each. Apps own their viewsets (`<app>/api.py`)."""

from rest_framework.routers import SimpleRouter


class Router(SimpleRouter):
    """Plural kebab-case paths; a slash at the end is accepted and never redirected to."""

    def __init__(self) -> None:
        super().__init__(trailing_slash=False)
        self.trailing_slash = "/?"


router = Router()
