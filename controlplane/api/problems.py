"""Every error is a problem document (RFC 9457)."""

from rest_framework.views import exception_handler

__all__ = ["exception_handler"]
