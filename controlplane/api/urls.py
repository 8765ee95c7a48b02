"""Addresses below /api/v1/."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView

from controlplane.api import views
from controlplane.api.router import router

app_name = "api"
urlpatterns = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("", include(router.urls)),
    # Also with DEBUG, where Django would answer with a page for developers.
    re_path(r"", views.not_found),
]
