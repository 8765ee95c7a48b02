"""Forms of planning's pages: a new scenario, the savings calculator, the rate of a race."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from controlplane.planning import savings
from controlplane.planning.models import LEAST_RATE, MOST_RATE
from controlplane.planning.services import FleetQuestion
from controlplane.serving import selectors as serving
from controlplane.serving.models import Pool

if TYPE_CHECKING:
    from controlplane.planning.selectors import Load
    from controlplane.tenancy.models import User

INPUT = {"class": "input"}
STARTING = {
    "rate_qps": 5.0, "prompt_tokens": 2600, "output_tokens": 250, "shared_tokens": 0, "groups": 0,
}  # fmt: skip
"""What stands in the form while nothing was measured; somebody has to look at it anyway."""


def _whole(label: Any, most: int, *, least: int = 0, **options: Any) -> forms.IntegerField:
    widget = forms.NumberInput(attrs=INPUT)
    return forms.IntegerField(
        label=label, min_value=least, max_value=most, widget=widget, **options
    )


def _real(label: Any, least: float, most: float, **options: Any) -> forms.FloatField:
    widget = forms.NumberInput(attrs={**INPUT, "step": "any"})
    return forms.FloatField(label=label, min_value=least, max_value=most, widget=widget, **options)


DEFAULT_TARGET = _("The planner's default: the pool states none.")


class ScenarioForm(forms.Form):
    """A pool on the fleet as it is, with a load."""

    name = forms.CharField(label=_("Name"), max_length=120, widget=forms.TextInput(attrs=INPUT))
    pool = forms.ModelChoiceField(
        label=_("Pool"), queryset=Pool.objects.none(), widget=forms.Select(attrs=INPUT)
    )
    rate_qps = _real(_("Requests per second"), 0.001, 100_000)
    prompt_tokens = _whole(_("Prompt, tokens"), 2_000_000, least=1)
    output_tokens = _whole(_("Output, tokens"), 1_000_000, least=1)
    shared_tokens = _whole(
        _("Shared beginning, tokens"), 2_000_000,
        help_text=_("Leading part of a prompt that other prompts have, too."),
    )  # fmt: skip
    groups = _whole(
        _("Different beginnings"), 100_000, help_text=_("0 when prompts share nothing.")
    )
    ttft_seconds = _real(_("Target for TTFT, s"), 0.001, 3600)
    tpot_seconds = _real(_("Target for TPOT, s"), 0.0001, 60)
    include_idle = forms.BooleanField(
        label=_("May use idle accelerators"), required=False,
        widget=forms.CheckboxInput(),
    )  # fmt: skip

    def __init__(self, *args: Any, viewer: "User", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pool = self.fields["pool"]
        if isinstance(pool, forms.ModelChoiceField):
            pool.queryset = serving.pools_for_viewer(viewer).filter(state=Pool.State.ACTIVE)
            pool.empty_label = str(_("choose"))
        stated = self.initial.get("pool")
        for name in defaults_of(stated) if stated is not None else ():
            self.fields[f"{name}_seconds"].help_text = DEFAULT_TARGET

    def question(self) -> FleetQuestion:
        """The valid form as the service takes it."""
        wanted = self.cleaned_data
        traffic = ("rate_qps", "prompt_tokens", "output_tokens", "shared_tokens", "groups")
        target = ("ttft_seconds", "tpot_seconds")
        return FleetQuestion(
            pool_id=wanted["pool"].pk,
            traffic={name: wanted[name] for name in traffic},
            target={name: wanted[name] for name in target},
            include_idle=wanted["include_idle"],
        )


def defaults_of(pool: Pool) -> list[str]:
    """Targets, `ttft` and `tpot`, that the pool does not state itself."""
    stated = {"ttft": pool.slo_ttft_p95_seconds, "tpot": pool.slo_tpot_p95_seconds}
    return [name for name, value in stated.items() if value is None]


def starting_values(pool: Pool | None, load: "Load | None") -> dict[str, Any]:
    """What the form shows first: the measured load where there is one."""
    values: dict[str, Any] = {**STARTING, "ttft_seconds": 3.0, "tpot_seconds": 0.08, "pool": pool}
    if pool is not None:
        values["ttft_seconds"] = pool.slo_ttft_p95_seconds or values["ttft_seconds"]
        values["tpot_seconds"] = pool.slo_tpot_p95_seconds or values["tpot_seconds"]
        values["name"] = f"{pool.slug} {timezone.localtime():%Y-%m-%d %H:%M}"
    if load is not None:
        traffic = load.traffic
        values |= {
            "rate_qps": round(traffic.rate_qps, 3),
            "prompt_tokens": traffic.prompt_tokens,
            "output_tokens": traffic.output_tokens,
            "shared_tokens": traffic.shared_tokens,
            "groups": traffic.groups,
        }
    return values


def _amount(label: Any, *, least: str = "0.00000001", **options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        label=label, min_value=Decimal(least), max_digits=20, decimal_places=8,
        widget=forms.NumberInput(attrs={**INPUT, "step": "any"}), **options,
    )  # fmt: skip


_EDGES = (
    ("measured", _("lies between loads that were tried")),
    ("less-than", _("is the smallest that was tried; the limit was not kept even there")),
    ("at-least", _("is the largest that was tried; the limit was still kept there")),
)


def _edge(label: Any) -> forms.TypedChoiceField:
    """What a number in flight is, `savings.Edge`; measured where nothing is said."""
    return forms.TypedChoiceField(
        label=label, choices=_EDGES, required=False, empty_value="measured", initial="measured",
        widget=forms.Select(attrs=INPUT),
    )  # fmt: skip


class SavingsForm(forms.Form):
    """What the savings calculator asks."""

    price = _amount(_("Price of an accelerator-hour"), least="0")
    concurrency = _amount(_("Requests in flight to serve"))
    ttft_limit_seconds = _amount(_("Limit for the mean TTFT, s"))
    pool_accelerators = _amount(_("Accelerators of the measured pool"))
    in_flight_before = _amount(
        _("In flight within the limit, baseline"),
        help_text=_("Largest number at which the pool kept the limit."),
    )
    edge_before = _edge(_("The baseline's number"))
    in_flight_after = _amount(_("In flight within the limit, new"))
    edge_after = _edge(_("The new way's number"))
    hours = _amount(_("Hours"), least="0", initial=savings.HOURS_A_YEAR)

    def question(self) -> savings.Question:
        """The valid form as the calculator takes it."""
        return savings.Question(**self.cleaned_data)


class RaceForm(forms.Form):
    """The slider of a live race."""

    rate = _whole(_("Requests/s"), MOST_RATE, least=LEAST_RATE)
