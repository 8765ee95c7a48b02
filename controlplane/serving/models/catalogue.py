"""Models that can be served and the pools that serve them."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel

slug_rule = RegexValidator(
    r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
    _("Use lower-case letters, digits, dots, hyphens and underscores."),
)


class Model(TimestampedModel):
    """A base model at one revision, with what its shape costs per token."""

    slug = models.CharField(_("short name"), max_length=120, unique=True, validators=[slug_rule])
    name = models.CharField(_("name"), max_length=200)
    revision = models.CharField(_("revision"), max_length=120, blank=True)
    precision = models.CharField(_("precision"), max_length=16, default="bf16")
    max_model_len = models.PositiveIntegerField(_("longest context (tokens)"))
    layers = models.PositiveIntegerField(_("layers"))
    hidden = models.PositiveIntegerField(_("hidden size"))
    kv_heads = models.PositiveIntegerField(_("KV heads"), null=True, blank=True)
    head_size = models.PositiveIntegerField(_("head size"), null=True, blank=True)
    kv_bytes_per_token = models.PositiveBigIntegerField(_("KV bytes per token"))
    weight_bytes = models.PositiveBigIntegerField(_("bytes of the weights"))
    flops_per_token = models.FloatField(_("FLOP per token"))
    attention_flops_per_token_per_context_token = models.FloatField(
        _("attention FLOP per token and token of context")
    )
    shape = models.JSONField(_("shape"), default=dict, blank=True)
    source = models.CharField(_("source of the figures"), max_length=300, blank=True)
    confidence = models.CharField(_("confidence"), max_length=32, blank=True)

    class Meta:
        ordering = ["slug", "pk"]
        verbose_name = _("model")
        verbose_name_plural = _("models")
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    max_model_len__gt=0,
                    layers__gt=0,
                    hidden__gt=0,
                    kv_bytes_per_token__gt=0,
                    weight_bytes__gt=0,
                    flops_per_token__gt=0,
                    attention_flops_per_token_per_context_token__gte=0,
                ),
                name="serving_model_figures_positive",
                violation_error_message=_("Every figure of a model's shape is above zero."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Pool(TimestampedModel):
    """Engines that serve one model together, and how routers choose among them."""

    class RoleMode(models.TextChoices):
        UNIFIED = "unified", _("unified")
        DISAGGREGATED = "disaggregated", _("disaggregated")

    class State(models.TextChoices):
        ACTIVE = "active", _("active")
        RETIRED = "retired", _("retired")

    class Policy(models.TextChoices):
        CONSORT = "consort", _("consort (price in seconds)")
        LEAST_REQUESTS = "least-requests", _("least requests")
        ROUND_ROBIN = "round-robin", _("round robin")
        RANDOM = "random", _("random")

    class Engine(models.TextChoices):
        SIMULATED = "simulated", _("simulated engine")
        VLLM = "vllm", _("vLLM")
        SGLANG = "sglang", _("SGLang")
        FURIOSA = "furiosa", _("Furiosa-LLM")

    slug = models.CharField(_("short name"), max_length=120, unique=True, validators=[slug_rule])
    name = models.CharField(_("name"), max_length=200)
    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="pools")
    artefact = models.ForeignKey(
        "serving.ModelArtefact",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="pools",
        verbose_name=_("files of the model"),
    )
    """None: the engine finds the weights itself."""
    role_mode = models.CharField(_("role mode"), max_length=16, choices=RoleMode)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.ACTIVE)
    engine = models.CharField(_("engine"), max_length=16, choices=Engine, default=Engine.SIMULATED)
    engine_arguments = models.JSONField(_("more engine arguments"), default=dict, blank=True)
    containers = models.JSONField(
        _("containers"),
        default=dict,
        blank=True,
        help_text=_("How engines run in containers: namespace, images by vendor and so on."),
    )
    self_heal = models.BooleanField(
        _("puts drift right"),
        default=False,
        help_text=_("Asks again for what somebody changed in a cluster; never against an owner."),
    )
    policy = models.CharField(
        _("routing policy"), max_length=32, choices=Policy, default=Policy.CONSORT
    )
    policy_parameters = models.JSONField(_("parameters of the policy"), default=dict, blank=True)
    recording = models.JSONField(
        _("recording of decisions"),
        default=dict,
        blank=True,
        help_text=_("sample_rate, shadow_policies, shadow_rate, as in the pool document."),
    )
    slo_ttft_p95_seconds = models.FloatField(
        _("target for TTFT p95 (s)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(3600)],
    )
    slo_tpot_p95_seconds = models.FloatField(
        _("target for TPOT p95 (s)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0001), MaxValueValidator(60)],
    )
    admission = models.JSONField(
        _("waiting and refusing"),
        default=dict,
        blank=True,
        help_text=_("queue_requests, queue_seconds and so on, as in the pool document."),
    )
    objectives = models.JSONField(
        _("objectives"),
        default=dict,
        blank=True,
        help_text=_("Priority by the name that a request states."),
    )
    rewrites = models.JSONField(
        _("rewrites"),
        default=list,
        blank=True,
        help_text=_("Rules that send a model's name to one of several models."),
    )
    canary_seconds = models.FloatField(
        _("time a canary is watched (s)"),
        default=10.0,
        validators=[MinValueValidator(0), MaxValueValidator(3600)],
        help_text=_("New settings stay this long on one router before the others get them."),
    )
    accepted_settings = models.CharField(
        _("hash of the settings that every router may have"), max_length=64, blank=True
    )
    canary = models.JSONField(_("settings under observation"), default=dict, blank=True)
    ramp_seconds = models.FloatField(_("ramp of a fresh endpoint (s)"), default=5.0)
    currency = models.CharField(_("currency"), max_length=3, blank=True)
    reconciled_at = models.DateTimeField(_("last loop run"), null=True, blank=True)
    conditions = models.JSONField(_("conditions"), default=list, blank=True)

    class Meta:
        ordering = ["slug", "pk"]
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        constraints = [
            models.CheckConstraint(
                condition=Q(slo_ttft_p95_seconds__isnull=True) | Q(slo_ttft_p95_seconds__gt=0),
                name="serving_pool_ttft_target_positive",
                violation_error_message=_("The target for TTFT is above zero seconds."),
            ),
            models.CheckConstraint(
                condition=Q(slo_tpot_p95_seconds__isnull=True) | Q(slo_tpot_p95_seconds__gt=0),
                name="serving_pool_tpot_target_positive",
                violation_error_message=_("The target for TPOT is above zero seconds."),
            ),
            models.CheckConstraint(
                condition=Q(ramp_seconds__gte=0),
                name="serving_pool_ramp_not_negative",
                violation_error_message=_("The ramp is zero seconds or more."),
            ),
        ]

    def __str__(self) -> str:
        return self.name
