"""Addresses of the console and of the API."""

from django.urls import include, path

from controlplane.api import views

handler400 = "controlplane.config.fallbacks.bad_request"
handler404 = "controlplane.config.fallbacks.not_found"
handler500 = "controlplane.config.fallbacks.server_error"

urlpatterns = [
    path("healthz", views.healthz),
    path("readyz", views.readyz),
    path("api/v1/", include("controlplane.api.urls")),
    path("", include("controlplane.console.urls")),
    path("fleet/", include("inventory.urls")),
    path("serving/", include("controlplane.serving.urls")),
    path("cost/", include("controlplane.finance.urls")),
    path("planning/", include("controlplane.planning.urls")),
]
