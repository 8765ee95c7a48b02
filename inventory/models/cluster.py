"""The clusters through which nodes are reached, and how the last attempts to reach them went."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from inventory.models.site import Site
from inventory.models.words import slug_field

NAMESPACE = "consort-serving"


class Cluster(TimestampedModel):
    """A connection to a place where nodes are. Credentials are a reference, never a value."""

    class Kind(models.TextChoices):
        KUBERNETES = "kubernetes", _("Kubernetes")
        LOCAL = "local", _("this machine")
        STATIC = "static", _("run by somebody else")

    class Connection(models.TextChoices):
        """How the last attempt to reach the API server went."""

        ANSWERS = "answers", _("answers")
        SILENT = "silent", _("silent")
        UNUSABLE = "unusable", _("unusable")
        UNKNOWN = "unknown", _("unknown")

    slug = slug_field()
    name = models.CharField(_("name"), max_length=100)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind, default=Kind.STATIC)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="clusters")
    connection_reference = models.CharField(_("connection reference"), max_length=200, blank=True)
    """`in-cluster`, or the name of a folder below CLUSTER_CREDENTIALS_DIR; kubernetes only."""
    namespace = models.CharField(
        _("namespace"),
        max_length=63,
        default=NAMESPACE,
        validators=[
            RegexValidator(
                r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
                _("A namespace has small letters, digits and hyphens, and no hyphen at its ends."),
            )
        ],
    )
    """Where engines of this installation run in the cluster."""
    answered_at = models.DateTimeField(_("last answer"), null=True, blank=True)
    """When this cluster last gave an observation or an answer."""
    asked_at = models.DateTimeField(_("last asked"), null=True, blank=True)
    error = models.CharField(_("last error"), max_length=500, blank=True)
    """English, as it came; `error_code` and `error_facts` give it in the reader's language."""
    error_code = models.CharField(_("code of the last error"), max_length=60, blank=True)
    error_facts = models.JSONField(_("facts of the last error"), default=dict, blank=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    """Attempts without an answer since the last answer."""
    retry_at = models.DateTimeField(_("not asked before"), null=True, blank=True)
    """No worker asks before this time; empty while the cluster answers."""
    tested_at = models.DateTimeField(_("last test"), null=True, blank=True)
    """When version, kinds and rights below were found out."""
    version = models.CharField(_("version"), max_length=80, blank=True)
    """The API server's, like v1.36.2; empty: not known."""
    kinds = models.JSONField(_("kinds"), null=True, blank=True)
    """Those that Consort can use and the cluster serves, as [apiVersion, kind]; None: not asked."""
    missing_rights = models.JSONField(_("missing rights"), null=True, blank=True)
    """Rights that are needed and not given, as sentences like `list nodes`; None: not asked."""

    class Meta:
        ordering = ["slug", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection_reference"],
                condition=Q(kind="kubernetes") & ~Q(connection_reference=""),
                name="inventory_cluster_reference_unique",
                violation_error_message=_("Another cluster has this connection reference."),
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def serves(self, api_version: str, kind: str) -> bool | None:
        """Whether the cluster has the kind; None when nobody asked yet."""
        return None if self.kinds is None else [api_version, kind] in self.kinds

    @property
    def connection(self) -> "Cluster.Connection | None":
        """How the last attempt went; None for a cluster that has no API server."""
        if self.kind != self.Kind.KUBERNETES:
            return None
        if self.failures:
            return self.Connection.SILENT
        if self.error:
            return self.Connection.UNUSABLE
        return self.Connection.ANSWERS if self.asked_at else self.Connection.UNKNOWN
