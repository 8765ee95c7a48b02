"""Addresses of the console and of the API."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("controlplane.api.urls")),
    path("", include("controlplane.console.urls")),
    path("fleet/", include("inventory.urls")),
    path("serving/", include("controlplane.serving.urls")),
    path("cost/", include("controlplane.finance.urls")),
]
