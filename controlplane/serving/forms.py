"""Forms of serving's pages: a change of roles, a pool's policy."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from controlplane.common import permissions
from controlplane.serving import selectors
from controlplane.serving.models import Pool, Role
from controlplane.serving.services import PlanInput
from inventory.models import Accelerator, Node

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


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
