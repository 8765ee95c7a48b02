import json

import msgspec
import pytest

from routing.core.document import DocumentError, PoolDocument, parse_document
from routing.core.relations import check_relations
from tests.benchmarks.bench_decide import document
from tests.routing.pool.builders import document_dict, endpoint_dict


def _with_ranks(*ranks: int | None) -> PoolDocument:
    pool = document(len(ranks), disaggregated=False)
    endpoints = tuple(
        msgspec.structs.replace(endpoint, url="http://10.0.0.1:8000", data_parallel_rank=rank)
        for endpoint, rank in zip(pool.endpoints, ranks, strict=True)
    )
    return msgspec.structs.replace(pool, endpoints=endpoints)


def test_ranks_behind_one_address_are_endpoints_of_their_own() -> None:
    check_relations(_with_ranks(0, 1, 2))


@pytest.mark.parametrize("ranks", [(None, None), (1, 1)])
def test_an_address_is_used_once_per_rank(ranks: tuple[int | None, ...]) -> None:
    with pytest.raises(DocumentError) as refused:
        check_relations(_with_ranks(*ranks))

    assert refused.value.pointer == "/endpoints/1/url"


@pytest.mark.parametrize(
    ("engine", "protocol", "role", "fits"),
    [
        ("vllm", "nixl", "decode", True),
        ("sglang", "sglang", "prefill", True),
        ("vllm", "sglang", "decode", False),
        ("sglang", "nixl", "prefill", False),
        ("sglang", "nixl", "both", True),
    ],
)
def test_the_ends_of_pairs_speak_the_protocol_of_the_pool(
    engine: str, protocol: str, role: str, *, fits: bool
) -> None:
    endpoints = [endpoint_dict("a", engine=engine, role=role), endpoint_dict("b", engine=engine)]
    raw = json.dumps(document_dict(*endpoints, disaggregation={"protocol": protocol})).encode()

    if fits:
        parse_document(raw)
        return
    with pytest.raises(DocumentError) as raised:
        parse_document(raw)
    assert raised.value.pointer == "/disaggregation/protocol"
