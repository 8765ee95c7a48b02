"""The replica that jumps does what the testbed's engine does step by step."""

from array import array
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.simulator.clock import Clock
from routing.simulator.engine.job import Job
from routing.simulator.engine.replica import Replica
from routing.simulator.profiles import load_profile
from routing.simulator.requests import Prompt, prompt_of
from routing.testbed import tokens as tk
from routing.testbed.scheduler import EngineModel, Limits
from routing.testbed.sequence import Sequence

BLOCK = 16
PROFILE = replace(
    load_profile("nvidia-h100-nvl", "granite-4.1-8b"),
    request_overhead_seconds=0.0,
    max_num_batched_tokens=256,
)


@dataclass(frozen=True)
class Load:
    """One request: a prompt that begins like others of its group."""

    at: float
    group: int
    shared: int
    own: int
    output: int


@dataclass
class Seen:
    """What became of it."""

    first: float = -1.0
    end: float = -1.0
    hit: int = -1
    preempted: int = 0


LOADS = st.lists(
    st.builds(
        Load,
        at=st.integers(0, 3000).map(lambda time: time / 1000 + 1e-4),
        group=st.integers(0, 2),
        shared=st.integers(0, 200),
        own=st.integers(1, 400),
        output=st.integers(1, 120),
    ),
    min_size=1,
    max_size=14,
    # Who comes at one moment is seen by one step of the testbed's and by two of ours.
    unique_by=lambda load: load.at,
).map(lambda loads: sorted(loads, key=lambda load: load.at))


def jumping(loads: list[Load], *, blocks: int, sequences: int) -> list[Seen]:
    clock, seen = Clock(), [Seen() for _ in loads]
    profile = replace(PROFILE, kv_tokens=blocks * BLOCK)
    replica = Replica(profile, clock, block_tokens=BLOCK, max_sequences=sequences)
    jobs = []
    for number, load in enumerate(loads):
        prompt, one = _prompt(number, load), seen[number]
        jobs.append(
            Job(
                number=number,
                keys=list(prompt.keys),
                prompt_tokens=prompt.tokens,
                output_tokens=load.output,
                on_first=lambda now, one=one: setattr(one, "first", now),
                on_end=lambda now, one=one: setattr(one, "end", now),
            )
        )
        clock.at(load.at, lambda now, job=jobs[-1]: replica.submit(job))
    clock.run()
    for job, one in zip(jobs, seen, strict=True):
        one.hit, one.preempted = job.cached, job.preempted
    return seen


def _prompt(number: int, load: Load) -> Prompt:
    return prompt_of(
        ((f"g{load.group}", load.shared), (f"own{number}", load.own)), block_tokens=BLOCK
    )


def stepping(loads: list[Load], *, blocks: int, sequences: int) -> list[Seen]:
    limits = Limits(
        block_size=BLOCK,
        blocks=blocks,
        sequences=sequences,
        batched_tokens=PROFILE.max_num_batched_tokens,
    )
    model, now = EngineModel(PROFILE, limits), 0.0
    made = [_sequence(number, load) for number, load in enumerate(loads)]
    seen, left, ends = [Seen() for _ in loads], list(range(len(loads))), {}
    while len(ends) < len(loads):
        while left and loads[left[0]].at <= now:
            model.add(made[left.pop(0)])
        seconds = model.begin_step(now)
        if seconds is None:
            now = loads[left[0]].at
            continue
        now += seconds
        # Whoever comes while a step runs waits for its end.
        while left and loads[left[0]].at <= now:
            model.add(made[left.pop(0)])
        for sequence in model.finish_step(now):
            if sequence.finish_reason is not None:
                ends[int(sequence.id)] = now
    for number, sequence in enumerate(made):
        seen[number] = Seen(
            first=sequence.first or 0.0,
            end=ends[number],
            hit=sequence.local_hit,
            preempted=sequence.preempted,
        )
    return seen


def _sequence(number: int, load: Load) -> Sequence:
    shared = np.random.default_rng(load.group).integers(1, 2**31, 200)[: load.shared]
    own = np.random.default_rng(1000 + number).integers(1, 2**31, load.own)
    tokens = array("I", [*shared.tolist(), *own.tolist()])
    root = tk.root_key(None)
    return Sequence(
        id=str(number),
        tokens=tokens,
        keys=tk.block_keys(tokens, BLOCK, root),
        root=root,
        salt=None,
        max_output=load.output,
        arrived=load.at,
        ignore_eos=True,
    )


def assert_alike(loads: list[Load], *, blocks: int, sequences: int = 64) -> None:
    ours = jumping(loads, blocks=blocks, sequences=sequences)
    theirs = stepping(loads, blocks=blocks, sequences=sequences)
    assert [one.hit for one in ours] == [one.hit for one in theirs]
    assert [one.preempted for one in ours] == [one.preempted for one in theirs]
    np.testing.assert_allclose(
        [one.first for one in ours], [one.first for one in theirs], rtol=1e-6
    )
    np.testing.assert_allclose([one.end for one in ours], [one.end for one in theirs], rtol=1e-6)


@settings(deadline=None)
@given(LOADS)
def test_with_room_for_all_every_token_comes_at_the_same_moment(loads: list[Load]) -> None:
    assert_alike(loads, blocks=2000)


@settings(deadline=None)
@given(LOADS)
def test_with_little_memory_hits_preemptions_and_times_are_the_same(loads: list[Load]) -> None:
    assert_alike(loads, blocks=60)


@settings(deadline=None)
@given(LOADS)
def test_with_few_places_in_the_batch_the_order_is_the_same(loads: list[Load]) -> None:
    assert_alike(loads, blocks=2000, sequences=2)
