"""Forms of serving's pages: a change of roles, a pool's policy and its SLO."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from controlplane.common import permissions
from controlplane.serving import rulelines, selectors
from controlplane.serving.models import Pool, Role
from controlplane.serving.services import PlanInput
from inventory.models import Accelerator, Node

if TYPE_CHECKING:
    from controlplane.common.errors import type_text
    from controlplane.tenancy.models import User


Read = TypeVar("Read")

RELEASE = "none"
"""Choice that takes the role away; an empty choice would be easy to send by mistake."""


@dataclass(slots=True)
class Candidate:
    """A node in the table of the select step, with its roles and why it cannot be chosen."""

    node: Node
    accelerators: int = 0
    roles: dict[str, int] = field(default_factory=dict)
    pools: set[str] = field(default_factory=set)

    @property
    def obstacle(self) -> str:
        """State or health in the way; "" if the node may be chosen."""
        if self.node.state != Node.State.READY:
            return str(self.node.state)
        return str(self.node.health) if self.node.health == "failed" else ""


def candidates(viewer: "User", *, limit: int = 500) -> list[Candidate]:
    """Nodes that the person may see, by host name, with their open roles; three queries."""
    nodes = Node.objects.exclude(state=Node.State.RETIRED).select_related(
        "node_type__accelerator_model", "cluster__site"
    )
    visible = permissions.restrict(nodes, viewer, "inventory.view_node").order_by("hostname")
    rows = {node.pk: Candidate(node) for node in visible[:limit]}
    devices = Accelerator.objects.filter(node__in=rows).exclude(state=Accelerator.State.RETIRED)
    held = dict(devices.values_list("pk", "node_id"))
    for node in held.values():
        rows[node].accelerators += 1
    for member in selectors.open_roles(accelerator_ids=list(held)):
        row = rows[held[member.accelerator_id]]
        role = member.assignment.role
        row.roles[role] = row.roles.get(role, 0) + 1
        row.pools.add(member.assignment.pool.slug)
    return list(rows.values())


class PlanForm(forms.Form):
    """What an operator asks for in the select step."""

    pool = forms.ModelChoiceField(
        label=_("Pool"),
        queryset=Pool.objects.none(),
        widget=forms.Select(attrs={"class": "input"}),
    )
    role = forms.ChoiceField(
        label=_("Role afterwards"),
        widget=forms.Select(attrs={"class": "input"}),
        choices=[
            ("", _("choose")),
            (Role.PREFILL, _("prefill")),
            (Role.DECODE, _("decode")),
            (Role.BOTH, _("both")),
            (RELEASE, _("none (release)")),
        ],
    )
    per_wave = forms.IntegerField(
        label=_("Accelerators per wave"),
        initial=1,
        min_value=1,
        max_value=64,
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    floor_percent = forms.IntegerField(
        label=_("Capacity floor, %"),
        initial=50,
        min_value=0,
        max_value=100,
        widget=forms.NumberInput(attrs={"class": "input"}),
        help_text=_("Share of the pool's accelerators that never goes missing during a wave."),
    )
    soak_seconds = forms.FloatField(
        label=_("Observe each wave, s"),
        initial=30,
        min_value=0,
        max_value=86_400,
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=300,
        widget=forms.TextInput(attrs={"class": "input"}),
        help_text=_("The approver and the audit read it."),
    )

    def __init__(self, *args: Any, viewer: "User", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pool = self.fields["pool"]
        if isinstance(pool, forms.ModelChoiceField):
            pool.queryset = selectors.pools_for_viewer(viewer).filter(state=Pool.State.ACTIVE)
            pool.empty_label = str(_("choose"))

    def wish(self, node_ids: list[UUID]) -> PlanInput:
        """The valid form as the service takes it."""
        wanted = self.cleaned_data
        return PlanInput(
            pool_id=wanted["pool"].pk,
            role="" if wanted["role"] == RELEASE else wanted["role"],
            reason=wanted["reason"],
            node_ids=node_ids,
            accelerators_per_wave=wanted["per_wave"],
            floor_share=wanted["floor_percent"] / 100,
            soak_seconds=wanted["soak_seconds"],
        )


class PolicyForm(forms.Form):
    """Another routing policy for a pool, with the reason."""

    policy = forms.ChoiceField(
        label=_("Routing policy"),
        choices=Pool.Policy.choices,
        widget=forms.Select(attrs={"class": "input"}),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=300, widget=forms.TextInput(attrs={"class": "input"})
    )


def _number(
    label: "type_text", least: float, most: float, help_text: "type_text"
) -> forms.FloatField:
    return forms.FloatField(
        label=label,
        required=False,
        min_value=least,
        max_value=most,
        widget=forms.NumberInput(attrs={"class": "input", "step": "any"}),
        help_text=help_text,
    )


class SloForm(forms.Form):
    """A pool's targets and who waits for them; an empty field states nothing."""

    slo_ttft_p95_seconds = _number(
        _("Target for TTFT p95, s"),
        0.001,
        3600,
        _("Routers aim at it for each request, and requests wait when no endpoint could meet it."),
    )
    slo_tpot_p95_seconds = _number(
        _("Target for TPOT p95, s"),
        0.0001,
        60,
        _("A request waits for its endpoint while one more would make answers there slower."),
    )
    queue_requests = forms.IntegerField(
        label=_("Requests that may wait"),
        required=False,
        min_value=0,
        max_value=1_000_000,
        widget=forms.NumberInput(attrs={"class": "input"}),
        help_text=_("In each router. Empty: 1000 under consort, else none; 0: none."),
    )
    queue_seconds = _number(
        _("Longest wait, s"), 0.001, 86_400, _("Then the answer is 429. Empty: 30 s.")
    )
    saturation_seconds = _number(
        _("Expected wait that makes requests wait here, s"),
        0,
        86_400,
        _("At the best endpoint. Empty: the target for TTFT, else 2 s."),
    )
    evict_sheddable = forms.BooleanField(
        label=_("End running requests of a priority below 0 when others wait"), required=False
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=300, widget=forms.TextInput(attrs={"class": "input"})
    )

    def __init__(self, sent: QueryDict | None, *, pool: Pool) -> None:
        self._stated = dict(pool.admission)
        targets = {name: getattr(pool, name) for name in _TARGETS}
        super().__init__(sent, initial=self._stated | targets)

    def changes(self) -> dict[str, Any]:
        """The valid form as the service takes it; rules that it does not show stay."""
        found = self.cleaned_data
        admission = {name: value for name, value in self._stated.items() if name not in _WAITING}
        admission |= {name: found[name] for name in _WAITING if found[name] is not None}
        if not admission["evict_sheddable"]:
            del admission["evict_sheddable"]
        return {name: found[name] for name in _TARGETS} | {"admission": admission}


class RolloutForm(forms.Form):
    """How routers get new settings of a pool, and what happens to drift."""

    canary_seconds = forms.FloatField(
        label=_("Watch new settings on one router, s"),
        min_value=0,
        max_value=3600,
        widget=forms.NumberInput(attrs={"class": "input", "step": "any"}),
        help_text=_(
            "The other routers get policy, limits and targets after this time, and never if more"
            " than 5 % of requests fail or are refused there. 0: all at once. Engines and keys do"
            " not wait, and a key that is taken away is gone at once."
        ),
    )
    self_heal = forms.BooleanField(
        label=_("Put right what somebody changed in a cluster"),
        required=False,
        help_text=_("Only fields that Consort owns; what belongs to somebody else is shown."),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=300, widget=forms.TextInput(attrs={"class": "input"})
    )

    def __init__(self, sent: QueryDict | None, *, pool: Pool) -> None:
        super().__init__(sent, initial={name: getattr(pool, name) for name in _ROLLOUT})

    def changes(self) -> dict[str, Any]:
        """The valid form as the service takes it."""
        return {name: self.cleaned_data[name] for name in _ROLLOUT}


class GatewayRulesForm(forms.Form):
    """A pool's objectives and rewrites as lines, with the reason."""

    objectives = forms.CharField(
        label=_("Objectives"),
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "input mono", "rows": 8, "spellcheck": "false"}),
        help_text=_(
            "A name and its priority in each line, for example: interactive 10. Requests state the"
            " name in a header; below 0 may be refused when others wait. Other names are 0."
        ),
    )
    rewrites = forms.CharField(
        label=_("Rewrites of models"),
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "input mono", "rows": 8, "spellcheck": "false"}),
        help_text=_(
            "Names, an arrow and models with weights in each line, for example: chat, assistant ->"
            " granite 90, granite-legal 10. * is every name. Callers stay with their model. Another"
            " model than the pool's is taken for an adapter of it."
        ),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=300, widget=forms.TextInput(attrs={"class": "input"})
    )

    def __init__(self, sent: QueryDict | None, *, pool: Pool) -> None:
        stated = {
            "objectives": rulelines.objectives_text(pool.objectives),
            "rewrites": rulelines.rewrites_text(pool.rewrites),
        }
        super().__init__(sent, initial=stated)

    def clean_objectives(self) -> dict[str, int]:
        """Priorities by name."""
        return self._read(rulelines.objectives_of, "objectives")

    def clean_rewrites(self) -> list[dict[str, Any]]:
        """Rules as in the pool document."""
        return self._read(rulelines.rewrites_of, "rewrites")

    def changes(self) -> dict[str, Any]:
        """The valid form as the service takes it."""
        return {name: self.cleaned_data[name] for name in ("objectives", "rewrites")}

    def _read(self, read: Callable[[str], Read], name: str) -> Read:
        try:
            return read(self.cleaned_data[name])
        except rulelines.RuleLineError as error:
            raise forms.ValidationError(str(error)) from error


_TARGETS = ("slo_ttft_p95_seconds", "slo_tpot_p95_seconds")
_ROLLOUT = ("canary_seconds", "self_heal")
_WAITING = ("queue_requests", "queue_seconds", "saturation_seconds", "evict_sheddable")
