"""The composition root as an app: loads Celery and the system checks."""

from django.apps import AppConfig


class CompositionConfig(AppConfig):
    """Loads what belongs to no single app."""

    name = "controlplane.config"
    label = "config"

    def ready(self) -> None:
        from controlplane.config import celery  # noqa: F401 - settings must be ready first
