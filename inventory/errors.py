"""Rules of the fleet that say no.

DomainError
├── UnknownVendorError, UnknownModelError, ValueNotAllowedError, SlugTakenError
├── NodeTransitionError
│   └── NodeNotReadyError
├── NodeHeldError, NodeExistsError, NodeWithoutAcceleratorsError
├── AcceleratorTransitionError, SerialInUseError, SlotTakenError, OtherVendorError
├── ObservationFromFutureError, ReportRefusedError
├── ClusterHeldError, ClusterNotTestableError, ClusterTestError
├── FindingClosedError, FindingNotAcceptableError, NothingToAcceptError, TooManyFindingsError
└── ImportTooLargeError, ImportRefusedError
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class UnknownVendorError(DomainError):
    code = "unknown-vendor"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Unknown vendor")
    message = _("There is no vendor file for '{vendor}'.")
    hint = _("Known vendors: {allowed}.")


class UnknownModelError(DomainError):
    code = "unknown-accelerator-model"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Unknown accelerator model")
    message = _("The catalogue has no accelerator model '{model}'.")
    hint = _("Load the catalogue, or add the model with its figures.")


class ValueNotAllowedError(DomainError):
    code = "value-not-allowed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("A value is not allowed")
    message = _("{field}: {why}")
    hint = _("Correct the value and try again; nothing was stored.")


class SlugTakenError(DomainError):
    code = "slug-taken"
    title = _("The short name is taken")
    message = _("The short name '{slug}' is taken.")
    hint = _("Choose another short name.")


class NodeTransitionError(DomainError):
    code = "node-state"
    title = _("Not possible in this state")
    message = _(
        "Node {node} is in the state '{state.label}', from which this step is not possible."
    )
    hint = _("The step is possible from: {allowed}.")


class NodeNotReadyError(NodeTransitionError):
    code = "node-not-ready"
    title = _("Node is not ready")
    message = _("Node {node} is in the state '{state.label}', so it cannot be cordoned.")


class NodeHeldError(DomainError):
    code = "node-held"
    title = _("The node is in use")
    message = _("Node {node} is still held: {holders}.")
    hint = _("End the role assignments of the node with a change plan, then retire it.")


class NodeExistsError(DomainError):
    code = "node-exists"
    title = _("The hostname is taken")
    message = _("A live node with the hostname {node} exists in the cluster {cluster}.")
    hint = _("Choose another hostname, or retire the other node first.")


class NodeWithoutAcceleratorsError(DomainError):
    code = "node-without-accelerators"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("A node has accelerators")
    message = _("Node {node} would have {count} accelerators.")
    hint = _("Give 1 to 64.")


class AcceleratorTransitionError(DomainError):
    code = "accelerator-state"
    title = _("Not possible in this state")
    message = _(
        "Accelerator {accelerator} is in the state '{state.label}', "
        "from which this step is not possible."
    )
    hint = _("The step is possible from: {allowed}.")


class SerialInUseError(DomainError):
    code = "serial-in-use"
    title = _("The serial is in use")
    message = _("The serial {serial} of {vendor} belongs to the live accelerator {accelerator}.")
    hint = _("Retire that accelerator first, or correct the serial.")


class SlotTakenError(DomainError):
    code = "slot-taken"
    title = _("The slot is taken")
    message = _("Slot {slot} of node {node} holds another live accelerator.")
    hint = _("Replace the accelerator in the slot, or choose another slot.")


class OtherVendorError(DomainError):
    code = "node-of-one-vendor"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("A node has accelerators of one vendor")
    message = _("Node {node} holds accelerators of {vendor}; {model} is of {other_vendor}.")
    hint = _("Use a model of the node's vendor, or add another node.")


class ObservationFromFutureError(DomainError):
    code = "observation-from-future"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The observation is from the future")
    message = _("The observation of {node} says it was made {seconds} s from the present time.")
    hint = _("Set the clock of the node; up to 30 s of difference are accepted.")


class ReportRefusedError(DomainError):
    code = "report-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The report cannot be read")
    message = _("The report cannot be read: {why}")
    hint = _("Send what `python -m inventory.agent` prints.")


class FindingClosedError(DomainError):
    code = "finding-closed"
    title = _("The finding is closed")
    message = _("The finding about {node} is already closed ({state.label}).")
    hint = _("A difference that still exists is found again at the next observation.")


class FindingNotAcceptableError(DomainError):
    code = "finding-not-acceptable"
    title = _("Nothing to accept")
    message = _("What was observed on {node} cannot be taken over by itself: {why}")
    hint = _("Change the node by hand, or override the finding with a reason.")


class NothingToAcceptError(DomainError):
    code = "nothing-to-accept"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Nothing to accept")
    message = _("None of the findings chosen is open.")
    hint = _("Choose open findings, or a cluster and a kind that has some.")


class TooManyFindingsError(DomainError):
    code = "too-many-findings"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Too many findings at once")
    message = _("{count} findings were chosen; {most} can be accepted at once.")
    hint = _("Choose a single cluster and a single kind.")


class ImportTooLargeError(DomainError):
    code = "import-too-large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = _("The file is too large")
    message = _("The file has {size} bytes; {limit_bytes} are allowed.")
    hint = _("Split the file by site or by cluster.")


class ImportRefusedError(DomainError):
    code = "import-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The file was not imported")
    message = _("The file has {count} errors; nothing was stored.")
    hint = _("Correct the rows named and send the whole file again.")


class ClusterHeldError(DomainError):
    code = "cluster-held"
    title = _("The cluster is in use")
    message = _("{field} of the cluster {cluster} cannot change: {holder}.")
    hint = _("End the role assignments on the nodes of the cluster with a change plan first.")


class ClusterNotTestableError(DomainError):
    code = "cluster-not-testable"
    title = _("Nothing to test")
    message = _("The cluster {cluster} is not a Kubernetes cluster: it has no API server.")
    hint = _("What is seen of its nodes comes from agents and files.")


class ClusterTestError(DomainError):
    """What a connection test fails with."""

    code = "cluster-test-failed"
    status = HTTPStatus.BAD_GATEWAY
    title = _("The connection does not work")
    message = _("{cluster}: {why}")
    hint = _("{advice}")
