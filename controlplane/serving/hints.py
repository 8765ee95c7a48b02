"""What to do about a condition that does not hold, in the reader's language.

Reasons and messages stay in the words of whoever said them, so that they can be searched for; the
hint beside them is ours.
"""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

_BY_MESSAGE: tuple[tuple[re.Pattern[str], object], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in [
        (
            "exceeded quota",
            _("The namespace's quota is spent: ask for more, or release engines there."),
        ),
        (
            "is being terminated",
            _("The namespace is being deleted: choose another one for the cluster."),
        ),
        (
            "admission webhook",
            _(
                "A policy of the cluster refuses the object: ask its owner, or put what the policy"
                " wants into the pool's patch."
            ),
        ),
        (
            "cannot allocate all claims|resourceclaim",
            _(
                "No free device meets the claim: compare the pool's device class and conditions"
                " with the node's ResourceSlices."
            ),
        ),
        (
            "node.kubernetes.io/(unreachable|not-ready)",
            _(
                "The node reports nothing. If it does not come back, release its accelerators by"
                " a plan."
            ),
        ),
        (
            "untolerated taint",
            _("Tolerate the node's taint in the pool's containers, or take the taint away."),
        ),
        (
            "Insufficient ",
            _("Something else holds what the engine needs: look which Pods are on the node."),
        ),
        (
            "node affinity/selector",
            _(
                "No node of the cluster has this host name: compare the label"
                " kubernetes.io/hostname with the inventory."
            ),
        ),
        (
            "OOMKilled",
            _(
                "The engine took more memory than it may: raise its memory, or lower its longest"
                " context."
            ),
        ),
    ]
)
_IMAGE = _("Correct the image or its tag in the pool's containers, or add the pull secret.")
_VOLUME = _("A volume cannot be mounted: check the claim or folder that holds the model's files.")
_BY_REASON: Mapping[str, object] = {
    "ImagePullBackOff": _IMAGE,
    "ErrImagePull": _IMAGE,
    "InvalidImageName": _IMAGE,
    "ErrImageNeverPull": _IMAGE,
    "CreateContainerConfigError": _(
        "A Secret or ConfigMap that the pool names is not in the namespace: create it there."
    ),
    "FailedMount": _VOLUME,
    "FailedAttachVolume": _VOLUME,
    "CrashLoopBackOff": _("The engine ends by itself; its output says why."),
    "NodeLost": _(
        "The node reports nothing. If it does not come back, release its accelerators by a plan."
    ),
    "OldPodEnding": _("The process before finishes its requests; it is ended when its time is up."),
    "Loading": _("Engines read their weights for minutes; the output shows how far it is."),
    "ProgressDeadlineExceeded": _("It took longer than the pool allows: look at the output."),
    "FieldConflict": _(
        "Somebody else manages the field: let them give it up, or want the same in the pool."
    ),
    "NotOurs": _("Rename or delete the other object, or choose another namespace."),
    "KindMissing": _("Install what serves this kind in the cluster, then test the connection."),
    "Forbidden": _("Give Consort the right in the cluster, then test the connection."),
    "Invalid": _("Correct what the API server names in the pool's containers or patch."),
    "FieldsDiffer": _(
        "Somebody changed the object: take the change back there, or make it in the pool."
    ),
    "Unavailable": _("It is asked again by itself; the cluster's page says how the last try went."),
}


def hint_of(condition: Mapping[str, Any]) -> str:
    """What to do about a condition as it is stored; "" when it holds or nothing is known."""
    holds = "False" if condition.get("type") == "Drifted" else "True"
    if condition.get("status") == holds:
        return ""
    message = str(condition.get("message", ""))
    for pattern, hint in _BY_MESSAGE:
        if pattern.search(message):
            return str(hint)
    return str(_BY_REASON.get(str(condition.get("reason", "")), ""))
