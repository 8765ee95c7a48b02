"""What the resources of planning share."""

from controlplane.common import reads


class Reads(reads.Reads):
    """List and detail; whoever may see scenarios sees their runs and advice."""

    view_action = "planning.view_scenario"
