"""Words and column types shared by the tables of the fleet."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Health(models.TextChoices):
    """What was observed; never set by a person. A stale observation is unknown, not healthy."""

    HEALTHY = "healthy", _("healthy")
    DEGRADED = "degraded", _("degraded")
    FAILED = "failed", _("failed")
    UNKNOWN = "unknown", _("unknown")


class HealthReason(models.TextChoices):
    """Why health is not `healthy`; the page translates it."""

    NONE = "", ""
    NEVER_OBSERVED = "never-observed", _("never observed")
    STALE = "stale", _("the last observation is too old")
    MISSING = "missing", _("not in the last observation")
    ACCELERATOR_MISSING = "accelerator-missing", _("an accelerator is missing")
    NOT_REPORTED = "not-reported", _("the vendor's tool reports no health")
    VENDOR_REPORT = "vendor-report", _("reported by the vendor's tool")
    ACCELERATOR_FAILED = "accelerator-failed", _("an accelerator reports a fault")
    NODE_NOT_READY = "node-not-ready", _("the cluster says that the node is not ready")
    NODE_LOST = "node-lost", _("the cluster does not hear the node")
    NODE_GONE = "node-gone", _("the node is not in the cluster")
    NOT_USABLE = "not-usable", _("the cluster gives out fewer accelerators than planned")
    COUNTED = "counted", _("the cluster says how many, not which")


def slug_field(*, unique: bool = True) -> "models.SlugField[str, str]":
    """Column of a short name that people type: letters, digits, - and _ (100 at most)."""
    return models.SlugField(_("short name"), max_length=100, unique=unique)
