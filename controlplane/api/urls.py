"""Addresses below /api/v1/."""

from django.urls import include, path

from controlplane.api.router import router

app_name = "api"
urlpatterns = [path("", include(router.urls))]
