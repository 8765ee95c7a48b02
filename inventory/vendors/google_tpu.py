"""Google TPU: labels of GKE; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="google-tpu",
    name="Google TPU",
    resource_names=("google.com/tpu",),
    model_label="cloud.google.com/gke-tpu-accelerator",
)

VENDOR: Vendor = _KNOWN
