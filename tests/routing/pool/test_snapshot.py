"""The state that the admin port shows."""

import json

from tests.routing.pool.builders import (
    endpoint_dict,
    make_request,
    make_router,
    serve,
)

LONG = "word " * 5000


def test_the_snapshot_is_json_with_pairs_and_verdicts() -> None:
    router = make_router(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode"),
        endpoint_dict("other", role="decode", kv_contract={"engine": "sglang"}),
    )
    serve(router, make_request(LONG), now=0.0)

    snapshot = json.loads(json.dumps(router.snapshot(now=1.0), allow_nan=False))

    verdicts = {pair["decode"]: (pair["verdict"], pair["usable"]) for pair in snapshot["pairs"]}
    assert verdicts == {"d": ("compatible", True), "other": ("incompatible", False)}
    assert snapshot["endpoints"][1]["running"] is None
    assert snapshot["leases_open"] == 0
