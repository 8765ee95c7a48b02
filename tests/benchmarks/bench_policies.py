"""CPU time of one decision by each policy, hashing included, at 8, 64 and 512 endpoints.

    python -m tests.benchmarks.bench_policies [--rounds 500]

The same pools, prompts and traffic as in `bench_decide`; the median of process CPU time per call is
printed. There is no budget: peers' policies are there to be compared with. A decision by any policy
prices all endpoints first, because its record and the shadow's regret need the price.
"""

import argparse
import sys

import numpy as np

from routing.core import prompt
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter
from tests.benchmarks.bench_decide import BUDGETS, document, median_us, texts, warmed

NAMES = (
    "random",
    "round-robin",
    "least-requests",
    "power-of-two",
    "session-hash",
    "sglang-cache-aware",
    "llm-d-weighted",
    "llm-d-precise",
    "llm-d-token-aware",
    "dynamo",
    "consort",
)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=500)
    rounds = options.parse_args().rounds
    rng = np.random.default_rng(7)
    identity = document(8, disaggregated=False).prompt_identity
    prompts = texts(rng)
    raw, root = [text.encode() for text in prompts], prompt.root_key("m")
    requests = [
        InferenceRequest(
            id=str(position), path="/v1/completions", model="m", tenant="t", project="p",
            key_id="k", arrived_at=0.0, session=f"s{position % 97}",
            parsed=parse_request(
                "/v1/completions", b'{"model":"m","prompt":"%b"}' % text, identity=identity
            ),
        )
        for position, text in enumerate(raw)
    ]  # fmt: skip
    pick = rng.integers(0, len(prompts), rounds)
    for disaggregated in (False, True):
        shape = "P/D" if disaggregated else "unified"
        for name in NAMES:
            taken = []
            for count in BUDGETS:
                pool = document(count, disaggregated=disaggregated)
                router = warmed(pool, requests)
                # The policy is told of the traffic after its first question.
                for request in requests:
                    decision = router.decide(request, now=9.0, policy=name)
                    router.end(router.begin(request, decision, now=9.0), now=9.0, outcome="aborted")

                def decide(turn: int, router: PoolRouter = router, name: str = name) -> object:
                    prompt.block_keys(raw[pick[turn]], root=root, chunk_bytes=256)
                    return router.decide(requests[pick[turn]], now=10.0, policy=name)

                median_us(decide, 50)
                taken.append(median_us(decide, rounds))
            numbers = "  ".join(f"{number:7.1f}" for number in taken)
            sys.stdout.write(f"{shape:8} {name:20} p50 us at {tuple(BUDGETS)}: {numbers}\n")


if __name__ == "__main__":
    main()
