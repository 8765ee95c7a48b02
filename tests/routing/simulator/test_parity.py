"""What the testbed's router chose on a recorded stretch, and what the simulator makes of it.

The tapes are of six engine processes of three vendors; `python -m tests.benchmarks.record_tape`
records new ones, which is right after a change of choices that was meant, and only then.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.tapes import arrivals
from tests.benchmarks.tapes.replayer import replay
from tests.benchmarks.tapes.tape import Tape, TapeError, read

TAPES = Path(__file__).with_name("tapes")
RECORDED = ("consort", "llm-d-precise")
SEEDS = range(11, 16)
AGAIN = "python -m tests.benchmarks.record_tape --policy"


@lru_cache(maxsize=2)
def tape_of(policy: str) -> Tape:
    return read(TAPES / f"{policy}.jsonl.xz")


@pytest.mark.parametrize("policy", RECORDED)
def test_a_recorded_stretch_is_decided_again_as_it_was(policy: str) -> None:
    picks = replay(tape_of(policy))

    differing = [pick for pick in picks if pick.again != pick.recorded]
    assert len(picks) == 300
    assert not differing, (
        f"{len(differing)} of {len(picks)} picks are other ones, first {differing[0]}. If choices"
        f" were changed on purpose, record again: {AGAIN} {policy}"
    )


def test_another_policy_would_not_have_chosen_so() -> None:
    picks = replay(tape_of("consort"), policy="least-requests")

    assert sum(pick.again == pick.recorded for pick in picks) < 0.4 * len(picks)


def test_requests_alone_are_enough_for_the_same_choices() -> None:
    tape = tape_of("consort")

    share = arrivals.equal_share(arrivals.recorded_rides(tape), arrivals.simulated_rides(tape))

    assert share >= 0.95


@pytest.mark.parametrize(("policy", "seeds"), [("consort", (11,)), ("llm-d-precise", SEEDS)])
def test_simulated_engines_are_as_fast_as_the_testbeds(policy: str, seeds: Sequence[int]) -> None:
    """Within 10 %. Equal seeds give equal homes of prefixes. A policy that draws among equals for
    each request leaves the recorded run with the first other reading: there several seeds count."""
    tape = tape_of(policy)
    real = arrivals.figures_of(arrivals.recorded_rides(tape))

    errors = [
        arrivals.figures_of(arrivals.simulated_rides(tape, seed=seed)).errors(real)
        for seed in seeds
    ]

    for name in real.__slots__:
        assert abs(np.median([error[name] for error in errors])) <= 0.10, name


def test_a_file_that_is_no_tape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "consort.jsonl.xz"
    path.write_bytes(b"no tape")

    with pytest.raises(TapeError, match="is no tape"):
        read(path)
