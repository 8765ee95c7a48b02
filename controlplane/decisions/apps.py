"""App configuration; tables and permissions carry the name of the area: routing."""

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    name = "controlplane.decisions"
    label = "routing"
