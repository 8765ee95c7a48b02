"""The panel "Pull the plug" of a simulated installation: ends a process and counts what it costs.

The setting DEMO_PLUG names the module that does it; a real installation has none and no panel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from controlplane.common import permissions
from controlplane.console.selectors.pools import requests_recorded
from controlplane.tenancy.models import User

PERMISSION = "serving.drain_endpoint"
_WORDS = {
    "engine": _("End an engine"),
    "worker": _("End the worker"),
    "router": _("End a router"),
}


class Plug(Protocol):
    """What the named module offers."""

    NothingToEndError: type[Exception]

    def choices(self) -> Sequence[str]:
        """Kinds of process that can be ended."""

    def pull(self, kind: str, *, engine_host_url: str, token: str) -> str:
        """End one and return its name."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Buttons, and requests since the first one that a router recorded."""

    kinds: Sequence[tuple[str, object]]
    total: int
    failed: int


def module() -> Plug | None:
    """The module that ends processes; None where there is none."""
    if not settings.SIMULATED or not settings.DEMO_PLUG:
        return None
    return cast(Plug, import_module(settings.DEMO_PLUG))


def panel(user: User) -> Panel | None:
    """The panel for people who may drain an endpoint; None for others.

    It counts recorded events, because a router that was ended counts from 0 again.
    """
    plug = module()
    if plug is None or not permissions.allows(user, PERMISSION):
        return None
    total, failed = requests_recorded()
    return Panel(
        kinds=[(kind, _WORDS.get(kind, kind)) for kind in plug.choices()],
        total=total,
        failed=failed,
    )
