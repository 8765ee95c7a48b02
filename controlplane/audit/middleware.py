"""Records denials once the refused transaction is rolled back, which would undo the entry too."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from controlplane.audit import services
from controlplane.common import denials


class DenialsMiddleware:
    """Write an entry for everything that was refused during the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with denials.collected() as refused:
            response = self.get_response(request)
        for denial in refused:
            services.record_denial(denial)
        return response
