"""Learned speeds against endpoints whose true speed is known."""

import numpy as np
import pytest

from routing.core.document import PoolDocument
from routing.core.lease import Lease
from routing.core.table import EndpointTable, Instance
from routing.producers.speeds import SETTLED_SAMPLES, STRETCH_SECONDS, LearnedSpeeds
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

TRUE = {"per_token": 1 / 9000, "step": 0.011, "per_sequence": 9.0e-5, "per_context": 5.0e-8}


def fixture(count: int = 2) -> tuple[PoolDocument, EndpointTable, LearnedSpeeds]:
    document = make_document(*(endpoint_dict(f"e{number}") for number in range(count)))
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    table = EndpointTable(document, instances, now=0.0)
    speeds = LearnedSpeeds(document.speed_classes)
    speeds.install(table, document.speed_classes)
    return document, table, speeds


def lease_on(instance: Instance) -> Lease:
    request = make_request()
    router = make_router(endpoint_dict(instance.spec.id))
    return Lease(
        number=1,
        request=request,
        decision=router.decide(request, now=0.0),
        destination=instance,
        prefill=None,
        began_at=0.0,
        work_tokens=0,
        output_tokens=1,
    )


def decode_once(
    table: EndpointTable, speeds: LearnedSpeeds, row: int, sequences: float, context: float
) -> None:
    """One request of 200 tokens at constant concurrency, told by the time integrals."""
    lease = lease_on(table.instances[row])
    step = TRUE["step"] + TRUE["per_sequence"] * sequences + TRUE["per_context"] * context
    elapsed = 199 * step
    lease.first_token_at = lease.stretch_at = 0.0
    lease.at_begin = {"others": 0.0}
    lease.at_first_token = {"sequence": 0.0, "context": 0.0, "prefill_done": 0.0}
    table.sequence_integral[row] = sequences * elapsed
    table.context_integral[row] = context * elapsed
    speeds.observe_decode(table, lease, output_tokens=199, now=elapsed)


def step_at(table: EndpointTable, sequences: float, context: float) -> float:
    """Learned step time of the first endpoint."""
    return float(
        table.step_seconds[0]
        + table.step_seconds_per_sequence[0] * sequences
        + table.step_seconds_per_context_token[0] * context
    )


def test_the_step_time_is_found_within_a_tenth_after_two_hundred_requests() -> None:
    rng = np.random.default_rng(1)
    _, table, speeds = fixture()

    for _ in range(200):
        sequences = float(rng.integers(1, 60))
        decode_once(table, speeds, 0, sequences, sequences * float(rng.integers(500, 4000)))

    for sequences in (1.0, 20.0, 50.0):
        context = sequences * 2000
        true = TRUE["step"] + TRUE["per_sequence"] * sequences + TRUE["per_context"] * context
        assert step_at(table, sequences, context) == pytest.approx(true, rel=0.1)


def test_the_prefill_rate_is_found_with_a_queue_ahead() -> None:
    rng = np.random.default_rng(2)
    _, table, speeds = fixture()

    for _ in range(200):
        ahead, work = float(rng.integers(0, 3) * 4000), int(rng.integers(200, 8000))
        lease = lease_on(table.instances[0])
        lease.at_begin = {
            "prefill_tokens": ahead,
            "sequences": 4.0,
            "others": 0.0,
            "context_tokens": 8000.0,
        }
        seconds = (ahead + work) * TRUE["per_token"] + 0.02
        noisy = seconds * float(rng.normal(1.0, 0.05))
        speeds.observe_prefill(table, lease, computed_tokens=work, seconds=noisy)

    assert table.prefill_seconds_per_token[0] == pytest.approx(TRUE["per_token"], rel=0.1)


def test_once_settled_whole_answers_teach_a_few_times_a_second() -> None:
    _, table, speeds = fixture()
    instance = table.instances[0]
    lease = lease_on(instance)
    lease.at_begin = dict.fromkeys(
        ("prefill_tokens", "sequences", "context_tokens", "others", "sequence", "context"), 0.0
    )

    def answers(count: int, *, now: float) -> int:
        for _ in range(count):
            speeds.observe_whole(table, lease, computed_tokens=500, output_tokens=100, now=now)
        return speeds.samples(instance)["decode"]

    assert answers(SETTLED_SAMPLES, now=1.0) == SETTLED_SAMPLES
    assert answers(50, now=2.0) == SETTLED_SAMPLES + 1
    assert answers(50, now=2.0 + STRETCH_SECONDS) == SETTLED_SAMPLES + 2


def test_one_wild_observation_moves_little() -> None:
    _, table, speeds = fixture()
    for _ in range(100):
        decode_once(table, speeds, 0, 10.0, 20_000.0)
    before = step_at(table, 10.0, 20_000.0)

    lease = lease_on(table.instances[0])
    lease.first_token_at = lease.stretch_at = 0.0
    lease.at_begin = {"others": 0.0}
    lease.at_first_token = {"sequence": 0.0, "context": 0.0, "prefill_done": 0.0}
    speeds.observe_decode(table, lease, output_tokens=199, now=900.0)

    assert step_at(table, 10.0, 20_000.0) == pytest.approx(before, rel=0.1)


def test_an_endpoint_without_samples_follows_its_class() -> None:
    _, table, speeds = fixture()
    prior = float(table.step_seconds[1])

    for _ in range(64):
        decode_once(table, speeds, 0, 10.0, 20_000.0)

    assert speeds.source(table.instances[1]) == "class"
    assert table.step_seconds[1] > 1.3 * prior
    assert speeds.samples(table.instances[1]) == {"prefill": 0, "decode": 0}


def test_speeds_stay_within_a_factor_of_ten_of_the_prior() -> None:
    _, table, speeds = fixture()
    lease = lease_on(table.instances[0])
    lease.at_begin = {
        "prefill_tokens": 0.0,
        "sequences": 0.0,
        "others": 0.0,
        "context_tokens": 0.0,
    }

    for _ in range(300):
        speeds.observe_prefill(table, lease, computed_tokens=5000, seconds=60.0)

    assert 5 / 20_000 < table.prefill_seconds_per_token[0] <= 10 / 20_000


def test_a_wait_for_memory_teaches_nothing_about_prefill() -> None:
    _, table, speeds = fixture()
    lease = lease_on(table.instances[0])
    lease.at_begin = {"admission": 2.0}

    speeds.observe_prefill(table, lease, computed_tokens=5000, seconds=60.0)

    assert speeds.source(table.instances[0]) == "prior"


def test_prefill_work_mixed_into_an_output_is_not_taken_for_slow_decoding() -> None:
    _, table, speeds = fixture()
    row, sequences, context = 0, 10.0, 20_000.0
    step = TRUE["step"] + TRUE["per_sequence"] * sequences + TRUE["per_context"] * context
    stall = 20_000 * float(table.prefill_seconds_per_token[row])

    for _ in range(100):
        lease = lease_on(table.instances[row])
        lease.first_token_at = lease.stretch_at = 0.0
        lease.at_begin = {"others": 0.0}
        lease.at_first_token = {"sequence": 0.0, "context": 0.0, "prefill_done": 0.0}
        elapsed = 199 * step + stall
        table.sequence_integral[row] = sequences * elapsed
        table.context_integral[row] = context * elapsed
        table.prefill_done_tokens[row] = 20_000
        speeds.observe_decode(table, lease, output_tokens=199, now=elapsed)

    assert step_at(table, sequences, context) == pytest.approx(step, rel=0.1)


def test_forgetting_goes_back_to_the_prior() -> None:
    document, table, speeds = fixture()
    for _ in range(50):
        decode_once(table, speeds, 0, 10.0, 20_000.0)

    speeds.forget(table)

    assert table.step_seconds.tolist() == [document.speed_classes["fast"].step_seconds] * 2
    assert speeds.describe(table, table.instances[0])["source"] == "prior"
