"""Can the prefill engines of a pool hand KV to its decode engines? By accelerator model."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from controlplane.console.words import short_model
from controlplane.serving.models import Endpoint, Pool
from routing.core.document import KvContract
from routing.core.pairing import PairVerdict, pair


@dataclass(frozen=True, slots=True)
class PairTable:
    """Prefill models in rows, decode models in columns."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[PairVerdict]]]


def pair_table(pool: Pool, endpoints: Sequence[Endpoint]) -> PairTable | None:
    """Verdict for each pair of models among the endpoints; None if nobody hands KV over."""
    contracts: dict[str, dict[str, KvContract]] = {"prefill": {}, "decode": {}}
    for endpoint in endpoints:
        name = short_model(endpoint.node.node_type.accelerator_model.name)
        if endpoint.role in contracts and endpoint.kv_contract:
            contracts[endpoint.role].setdefault(name, _contract(endpoint))
    if not contracts["prefill"] or not contracts["decode"]:
        return None
    columns = sorted(contracts["decode"])
    return PairTable(
        columns=columns,
        rows=[
            (
                name,
                [
                    pair(
                        contract,
                        contracts["decode"][column],
                        kv_bytes_per_token=pool.model.kv_bytes_per_token,
                    )
                    for column in columns
                ],
            )
            for name, contract in sorted(contracts["prefill"].items())
        ],
    )


def _contract(endpoint: Endpoint) -> KvContract:
    return msgspec.convert(endpoint.kv_contract, KvContract)
