"""Addresses of this app."""

from django.urls import URLPattern

app_name = "finance"
urlpatterns: list[URLPattern] = []
