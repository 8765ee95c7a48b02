"""Prompts of a group begin alike; whole prompts come again."""

from tests.routing.simulator.workloads.draws import drawn, shared_blocks, small


def test_there_are_as_many_prompts_as_groups_times_questions() -> None:
    prompts = {arrival.prompt for arrival in drawn(small())}

    assert len(prompts) == 6


def test_prompts_of_a_group_share_its_system_prompt_and_no_more() -> None:
    arrivals = drawn(small())
    first = arrivals[0]

    shared = {shared_blocks(first, other) for other in arrivals}

    # Nothing with other groups, ten blocks of its own group, all with the same question.
    assert shared == {0, 10, 12}


def test_without_groups_nothing_is_shared_also_between_stages() -> None:
    workload = small(groups=0, prompts=0)
    arrivals = drawn(workload, 0) + drawn(workload, 1)

    first_keys = [arrival.prompt.keys[0] for arrival in arrivals]

    assert len(set(first_keys)) == len(first_keys)


def test_without_questions_each_prompt_ends_differently() -> None:
    arrivals = drawn(small(prompts=0))

    assert len({arrival.prompt.keys[-1] for arrival in arrivals}) == len(arrivals)
    assert len({arrival.prompt.keys[0] for arrival in arrivals}) == 3


def test_clients_state_the_length_of_their_answers() -> None:
    arrivals = drawn(small())

    assert all(arrival.max_tokens == arrival.output_tokens for arrival in arrivals)
    assert all(arrival.prompt.tokens == 768 for arrival in arrivals)
    assert small().longest_tokens == 868
