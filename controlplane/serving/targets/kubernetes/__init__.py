"""The target `kubernetes`: what runs in clusters, through their API servers.

`shapes`, `pods`, `seeing`, `drift` and `stamping` are pure: plain objects in, plain values out, and
no object is too odd for them. `reaching` and `target` talk to clusters.
"""

from controlplane.serving.targets.base import Target
from controlplane.serving.targets.kubernetes.target import Kubernetes

TARGET: Target = Kubernetes()
