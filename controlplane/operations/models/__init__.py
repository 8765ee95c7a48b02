"""Tables of operations, one file per noun."""

from controlplane.operations.models.idempotency import IdempotencyRecord
from controlplane.operations.models.lease import Lease
from controlplane.operations.models.operation import Operation, OperationStep
from controlplane.operations.models.outbox import OutboxEvent
from controlplane.operations.models.tick import BeatTick

__all__ = ["BeatTick", "IdempotencyRecord", "Lease", "Operation", "OperationStep", "OutboxEvent"]
