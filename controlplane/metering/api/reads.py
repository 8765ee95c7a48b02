"""What lists of metering have in common."""

from typing import Any

from rest_framework import mixins, viewsets

from controlplane.common.http import ApiRequest


class Reads(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """A list and its rows."""

    request: ApiRequest
