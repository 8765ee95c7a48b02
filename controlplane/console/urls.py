"""Addresses of this app."""

from django.urls import URLPattern

app_name = "console"
urlpatterns: list[URLPattern] = []
