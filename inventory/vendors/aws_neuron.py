"""AWS Neuron: the type of the instance; no tool is read."""

from inventory.vendors.base import KnownByName, Vendor

_KNOWN = KnownByName(
    slug="aws-neuron",
    name="AWS Neuron",
    resource_names=("aws.amazon.com/neuron", "aws.amazon.com/neurondevice"),
    model_label="node.kubernetes.io/instance-type",
)

VENDOR: Vendor = _KNOWN
