"""Clusters with how their connection is and what they lack, for the pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from controlplane.tenancy.models import User
from inventory import clusterwords, selectors
from inventory.kubernetes import wanted
from inventory.models import Cluster


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster as a page shows it."""

    cluster: Cluster
    trouble: clusterwords.Words | None
    """Why the last attempt went wrong; None when it did not."""
    needed: list[wanted.Wanted] | None
    """Kinds without which no engine runs there; None: nobody asked yet."""
    useful: list[wanted.Wanted] | None
    """Missing kinds that would widen what is possible; None: nobody asked yet."""

    @property
    def lacks(self) -> int | None:
        """Rights and needed kinds that are missing; None: nobody asked yet."""
        if self.needed is None or self.cluster.missing_rights is None:
            return None
        return len(self.needed) + len(self.cluster.missing_rights)


def clusters_for(user: User) -> QuerySet[Cluster]:
    """Clusters that the person may see: those in trouble first, then by name."""
    return selectors.clusters_for_viewer(user).order_by("-failures", "slug", "pk")


def clusters_in_trouble(user: User) -> list[ClusterRow]:
    """Clusters whose last attempt went wrong, the longest silence first; ten at most."""
    rows = clusters_for(user).filter(kind=Cluster.Kind.KUBERNETES).exclude(error="")
    return rows_of(rows.order_by("answered_at", "pk")[:10])


def row_of(cluster: Cluster) -> ClusterRow:
    """One row; asks the database nothing."""
    missing = None if cluster.kinds is None else wanted.missing(cluster.kinds)
    return ClusterRow(
        cluster=cluster,
        trouble=clusterwords.of_cluster(cluster),
        needed=None if missing is None else [kind for kind in missing if kind.needed],
        useful=None if missing is None else [kind for kind in missing if not kind.needed],
    )


def rows_of(clusters: Iterable[Cluster]) -> list[ClusterRow]:
    """Rows in the order given."""
    return [row_of(cluster) for cluster in clusters]
