"""Pages by cursor."""

from rest_framework import pagination


class CursorPagination(pagination.CursorPagination):
    """Pages by cursor, in the order of the model."""
