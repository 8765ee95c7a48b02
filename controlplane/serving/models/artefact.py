"""Files of models: where they come from, and on which nodes they are."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel

sha256_rule = RegexValidator(r"^[0-9a-f]{64}$", _("Write 64 hexadecimal digits, lower case."))


class ModelArtefact(TimestampedModel):
    """The files of one revision of a model at one source.

    `sha256` is that of the list of files; `inventory/files.py` says how anybody counts it.
    """

    class Kind(models.TextChoices):
        PVC = "pvc", _("volume claim")
        NODE_PATH = "node-path", _("folder on nodes")
        OCI = "oci", _("OCI image")
        S3 = "s3", _("object store (S3)")

    class State(models.TextChoices):
        ACTIVE = "active", _("active")
        RETIRED = "retired", _("retired")

    slug = models.SlugField(_("short name"), max_length=120, unique=True)
    model = models.ForeignKey("serving.Model", on_delete=models.PROTECT, related_name="artefacts")
    kind = models.CharField(_("kind of source"), max_length=16, choices=Kind)
    uri = models.CharField(_("source"), max_length=500)
    """Name of the claim, absolute folder, image reference, or s3://bucket/prefix."""
    endpoint = models.CharField(_("address of the store"), max_length=300, blank=True)
    """Of an object store only, for example https://s3.example.internal."""
    node_folder = models.CharField(_("folder on the node"), max_length=500, blank=True)
    """Where a copy is kept on each node; of a folder on nodes it is the source itself."""
    revision = models.CharField(_("revision"), max_length=120, blank=True)
    sha256 = models.CharField(
        _("SHA-256"), max_length=64, blank=True, validators=[sha256_rule],
        help_text=_("Of the list of files; empty: nobody stated it, so nothing is compared."),
    )  # fmt: skip
    size_bytes = models.BigIntegerField(_("size"), null=True, blank=True)
    licence = models.CharField(_("licence"), max_length=120, blank=True)
    gated = models.BooleanField(_("gated"), null=True, blank=True)
    """True when the publisher asks for consent; None: unknown."""
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.ACTIVE)

    class Meta:
        ordering = ["slug", "pk"]
        verbose_name = _("model artefact")
        verbose_name_plural = _("model artefacts")
        constraints = [
            models.CheckConstraint(
                condition=Q(size_bytes__isnull=True) | Q(size_bytes__gt=0),
                name="serving_modelartefact_size_positive",
                violation_error_message=_("The size is above 0, or left out when unknown."),
            ),
            models.CheckConstraint(
                condition=Q(sha256="") | Q(sha256__regex=r"^[0-9a-f]{64}$"),
                name="serving_modelartefact_sha256_is_one",
                violation_error_message=_("SHA-256 has 64 hexadecimal digits, lower case."),
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def folder(self) -> str:
        """Absolute folder of the files on a node; empty where there is none."""
        return self.uri if self.kind == self.Kind.NODE_PATH else self.node_folder


class ArtefactPresence(TimestampedModel):
    """What was last seen of an artefact on a node."""

    class State(models.TextChoices):
        UNKNOWN = "unknown", _("unknown")
        MISSING = "missing", _("not there")
        FETCHING = "fetching", _("being fetched")
        CHECKING = "checking", _("being checked")
        PRESENT = "present", _("present")
        WRONG = "wrong", _("other files")

    artefact = models.ForeignKey(ModelArtefact, on_delete=models.PROTECT, related_name="presences")
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="artefacts")
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.UNKNOWN)
    size_bytes = models.BigIntegerField(_("size seen"), null=True, blank=True)
    sha256 = models.CharField(_("SHA-256 seen"), max_length=64, blank=True)
    read_bytes_per_second = models.BigIntegerField(_("reading speed"), null=True, blank=True)
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    checked_at = models.DateTimeField(_("checked at"), null=True, blank=True)

    class Meta:
        ordering = ["artefact", "node", "pk"]
        verbose_name = _("artefact on a node")
        verbose_name_plural = _("artefacts on nodes")
        constraints = [
            models.UniqueConstraint(
                fields=["artefact", "node"],
                name="serving_artefactpresence_once",
                violation_error_message=_("An artefact is on a node once."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.artefact_id} on {self.node_id}"
