"""Filters of lists."""

from django_filters.rest_framework import DjangoFilterBackend


class StrictFilterBackend(DjangoFilterBackend):
    """Refuses what it does not know."""
