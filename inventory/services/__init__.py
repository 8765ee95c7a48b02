"""Changes of the fleet: one function per thing a person or a discovery can do.

Each locks, checks the permission under the lock, changes, records and tells, in one transaction.
"""

from inventory.services.accelerators import (
    add_accelerator,
    cordon_accelerator,
    move_accelerator,
    replace_accelerator,
    retire_accelerator,
    uncordon_accelerator,
    write_serial,
)
from inventory.services.accepting import MOST_FINDINGS, run_accepting, start_accepting
from inventory.services.catalogue import load_catalogue
from inventory.services.cluster_changes import change_cluster, create_cluster
from inventory.services.connection_tests import run_connection_test, start_connection_test
from inventory.services.discovering import discover_cluster, discover_clusters
from inventory.services.findings import accept_finding, dismiss_finding, override_finding
from inventory.services.importing import import_file
from inventory.services.nodes import (
    change_node,
    cordon_node,
    create_node,
    deliver_node,
    drain_node,
    finish_maintenance,
    provision_node,
    retire_node,
    start_maintenance,
    uncordon_node,
)
from inventory.services.observing import (
    forget_observations,
    mark_stale,
    record_observation,
    record_report,
)
from inventory.services.sites import change_site, create_site

__all__ = [
    "MOST_FINDINGS",
    "accept_finding",
    "add_accelerator",
    "change_cluster",
    "change_node",
    "change_site",
    "cordon_accelerator",
    "cordon_node",
    "create_cluster",
    "create_node",
    "create_site",
    "deliver_node",
    "discover_cluster",
    "discover_clusters",
    "dismiss_finding",
    "drain_node",
    "finish_maintenance",
    "forget_observations",
    "import_file",
    "load_catalogue",
    "mark_stale",
    "move_accelerator",
    "override_finding",
    "provision_node",
    "record_observation",
    "record_report",
    "replace_accelerator",
    "retire_accelerator",
    "retire_node",
    "run_accepting",
    "run_connection_test",
    "start_accepting",
    "start_connection_test",
    "start_maintenance",
    "uncordon_accelerator",
    "uncordon_node",
    "write_serial",
]
