"""Pages of clusters: the list, and one with its connection."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import polling
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.console.selectors import clusters as selectors
from inventory.kubernetes import wanted
from inventory.models import Cluster
from inventory.selectors import newest_test

LIST_SECONDS = 15
TEST_SECONDS = 2
"""While a test runs, so that its end is seen."""


@login_required
def clusters(request: ConsoleRequest) -> HttpResponse:
    """Every cluster: who answers since when, and what is missing there."""
    permissions.require(request.user, "inventory.view_cluster")
    page = page_of(request, selectors.clusters_for(request.user))
    context = {
        "page": page,
        "rows": selectors.rows_of(page.object_list),
        "may_add": permissions.allows(request.user, "inventory.add_cluster"),
        "sources": [
            Source(_("Cluster %(name)s") % {"name": cluster.slug}, cluster.answered_at)
            for cluster in page.object_list[:6]
            if cluster.answered_at
        ],
        "refresh_seconds": LIST_SECONDS,
    }
    return polling.page_or_fragment(
        request, page="inventory/clusters.html", fragment="inventory/_clusters.html",
        context=context,
    )  # fmt: skip


@login_required
def cluster(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One cluster: its connection, the last test, missing rights and kinds."""
    permissions.require(request.user, "inventory.view_cluster")
    found = get_object_or_404(selectors.clusters_for(request.user), pk=pk)
    test = newest_test(found)
    running = test is not None and not test.has_ended
    seconds = TEST_SECONDS if running else LIST_SECONDS
    context = {
        "row": selectors.row_of(found),
        "cluster": found,
        "is_kubernetes": found.kind == Cluster.Kind.KUBERNETES,
        "test": test,
        "running": running,
        "steps": test.steps.all() if test is not None else [],
        "kinds": _kinds(found),
        "may_test": permissions.allows(request.user, "inventory.test_cluster", found),
        "may_change": permissions.allows(request.user, "inventory.change_cluster", found),
        "sources": [Source(_("Cluster %(name)s") % {"name": found.slug}, found.answered_at)],
        "refresh_seconds": seconds,
    }
    return polling.page_or_fragment(
        request, page="inventory/cluster.html", fragment="inventory/_cluster.html", context=context
    )


def _kinds(found: Cluster) -> list[tuple[wanted.Wanted, bool | None]]:
    """Kinds that Consort can use, each with whether the cluster has it; None: nobody asked."""
    return [(kind, found.serves(*kind.pair)) for kind in wanted.WANTED]
