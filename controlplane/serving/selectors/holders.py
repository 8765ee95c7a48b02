"""Whether serving still needs a node; named in settings, because inventory cannot ask upwards."""

from django.utils.translation import gettext as _

from controlplane.serving.models import RoleAssignment
from inventory.models import Cluster, Node


def holds(node: Node) -> str:
    """Open roles of the node as a sentence in the reader's language, "" if it has none.

    Called under the lock of the node.
    """
    roles = [
        _("role {role} in the pool {pool}").format(role=row.get_role_display(), pool=row.pool.slug)
        for row in RoleAssignment.objects.open()
        .filter(node=node)
        .select_related("pool")
        .order_by("valid_from", "pk")
    ]
    return ", ".join(dict.fromkeys(roles))


def holds_cluster(cluster: Cluster) -> str:
    """Open roles on nodes of the cluster as a sentence in the reader's language, "" if none."""
    pools = (
        RoleAssignment.objects.open()
        .filter(node__cluster=cluster)
        .order_by("pool__slug")
        .values_list("pool__slug", flat=True)
        .distinct()
    )
    names = list(pools[:6])
    return _("roles of the pools {pools}").format(pools=", ".join(names)) if names else ""
