"""What people do to the fleet in the console; pages that only read are in `console`."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms.models import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from controlplane.common import permissions
from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest
from inventory import selectors, services
from inventory.discovery.file_import import COLUMNS
from inventory.forms import ClusterChangeForm, ClusterForm, ImportForm, ReasonForm
from inventory.models import ImportRun


@require_POST
@login_required
def node_cordon(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Stop placements on a node, with a reason."""
    node = get_object_or_404(selectors.nodes_for_viewer(request.user), pk=pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Say why: the audit keeps the reason."))
        return _back(request)
    reason = form.cleaned_data["reason"]
    try:
        services.cordon_node(node_id=node.pk, reason=reason, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
    else:
        messages.success(request, _("Node: %(name)s. It is cordoned.") % {"name": node.hostname})
    return _back(request)


@require_POST
@login_required
def node_uncordon(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Let placements come back to a node."""
    node = get_object_or_404(selectors.nodes_for_viewer(request.user), pk=pk)
    try:
        services.uncordon_node(
            node_id=node.pk, reason=request.POST.get("reason", "")[:200], actor=request.user
        )
    except DomainError as error:
        messages.error(request, error.told)
    else:
        messages.success(request, _("Node: %(name)s. It is ready.") % {"name": node.hostname})
    return _back(request)


@login_required
def node_import(request: ConsoleRequest) -> HttpResponse:
    """Check a file of nodes, then bring it in; every wrong row is named."""
    permissions.require(request.user, "inventory.import_node")
    sent = request.method == "POST"
    form = ImportForm(request.POST, request.FILES) if sent else ImportForm()
    run: ImportRun | None = None
    if sent and form.is_valid():
        try:
            run = services.import_file(
                content=form.cleaned_data["file"].read(),
                file_name=form.cleaned_data["file"].name,
                dry_run=not form.cleaned_data["apply"],
                actor=request.user,
            )
        except DomainError as error:
            form.add_error(None, error.told)
    refused = bool(form.errors) or (run is not None and run.error_count > 0)
    context = {"form": form, "run": run, "columns": COLUMNS}
    return render(request, "inventory/import.html", context, status=422 if refused else 200)


@login_required
def cluster_add(request: ConsoleRequest) -> HttpResponse:
    """Add a cluster; the connection of a Kubernetes cluster is tested at once."""
    permissions.require(request.user, "inventory.add_cluster")
    form = ClusterForm(request.POST or None, viewer=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            cluster = services.create_cluster(actor=request.user, **form.values())
        except DomainError as error:
            form.add_error(None, error.told)
        else:
            return redirect("console:cluster", cluster.pk)
    context = {"form": form, "cluster": None}
    return render(
        request, "inventory/cluster_form.html", context, status=422 if form.errors else 200
    )


@login_required
def cluster_change(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Change name, reference or namespace of a cluster, with a reason."""
    cluster = get_object_or_404(selectors.clusters_for_viewer(request.user), pk=pk)
    permissions.require(request.user, "inventory.change_cluster", cluster)
    form = ClusterChangeForm(request.POST or None, initial=model_to_dict(cluster))
    if request.method == "POST" and form.is_valid():
        try:
            services.change_cluster(cluster_id=cluster.pk, actor=request.user, **form.cleaned_data)
        except DomainError as error:
            form.add_error(None, error.told)
        else:
            return redirect("console:cluster", cluster.pk)
    context = {"form": form, "cluster": cluster}
    return render(
        request, "inventory/cluster_form.html", context, status=422 if form.errors else 200
    )


@require_POST
@login_required
def cluster_test(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Start a test of the connection and go back to the cluster, where it is followed."""
    cluster = get_object_or_404(selectors.clusters_for_viewer(request.user), pk=pk)
    try:
        services.start_connection_test(cluster_id=cluster.pk, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
    return redirect("console:cluster", cluster.pk)


def _back(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return redirect(target)
    return redirect("console:nodes")
