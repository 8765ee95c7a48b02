"""The side navigation: one line per page, in the order of the groups."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from controlplane.common import permissions
from controlplane.tenancy.models import User


@dataclass(frozen=True, slots=True)
class Page:
    """A page in the navigation; shown to whoever has its permission ("" is everybody)."""

    route: str
    name: object
    icon: str
    permission: str = ""
    key: str = ""
    """Letter after `g` that opens it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A page of the navigation as one person sees it."""

    page: Page
    url: str
    current: bool


GROUPS: list[tuple[object, list[Page]]] = [
    ("", [Page("console:overview", _("Overview"), "home", key="o")]),
    (
        _("Fleet"),
        [
            Page("console:nodes", _("Nodes"), "node", "inventory.view_node", key="n"),
            Page("console:clusters", _("Clusters"), "cube", "inventory.view_cluster"),
            Page("console:findings", _("Findings"), "find", "inventory.view_finding"),
        ],
    ),
    (
        _("Serving"),
        [
            Page("console:pools", _("Pools"), "pool", "serving.view_pool", key="p"),
            Page("console:models", _("Models"), "chip", "serving.view_model"),
            Page("console:roles", _("Roles"), "roles", "serving.view_pool"),
            Page(
                "console:changes", _("Change plans"), "change", "serving.view_changeplan", key="c"
            ),
            Page(
                "console:deployments", _("Deployments"), "deploy", "serving.view_workload", key="d"
            ),
            Page("console:routers", _("Routers"), "router", "serving.view_router", key="r"),
        ],
    ),
    (
        _("Routing"),
        [
            Page("console:decisions", _("Decisions"), "pulse", "routing.view_decision", key="t"),
            Page("console:route-test", _("Route tester"), "send", "routing.test_route"),
        ],
    ),
    (
        _("Planning"),
        [
            Page("console:race", _("Race"), "race", "planning.view_scenario"),
            Page("console:planning", _("Scenarios"), "plan", "planning.view_scenario"),
            Page("planning:savings", _("Savings calculator"), "save", "planning.view_scenario"),
        ],
    ),
    (
        _("Tenants and money"),
        [Page("console:cost", _("Cost"), "cost", "finance.view_ledger", key="m")],
    ),
    (
        _("Control"),
        [
            Page("console:audit", _("Audit"), "audit", "audit.view_auditentry", key="a"),
            Page("console:operations", _("Operations"), "list"),
        ],
    ),
]


def links(request: HttpRequest) -> list[tuple[object, list[Link]]]:
    """Groups with the pages that the person may open; the open page is marked."""
    user = request.user
    if not isinstance(user, User):
        return []
    groups = [(name, [(page, reverse(page.route)) for page in pages if _may(user, page)])
              for name, pages in GROUPS]  # fmt: skip
    here = _here(request.path, [url for _name, pages in groups for _page, url in pages])
    return [
        (name, [Link(page=page, url=url, current=url == here) for page, url in pages])
        for name, pages in groups
        if pages
    ]


def _may(user: User, page: Page) -> bool:
    return not page.permission or permissions.allows(user, page.permission)


def _here(path: str, urls: list[str]) -> str | None:
    """The page that is open: the longest address that the path is or lies below."""
    fitting = [url for url in urls if path == url or (url != "/" and path.startswith(f"{url}/"))]
    return max(fitting, key=len, default=None)
