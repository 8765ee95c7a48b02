"""Parts come in their shares and keep their prompts apart."""

from routing.simulator.workloads.mixture import Mixture
from routing.simulator.workloads.random_lengths import RandomLengths
from tests.routing.simulator.workloads.draws import STAGES, drawn, small


def _mixture() -> Mixture:
    long = RandomLengths(id="m.1", stages=(), input_tokens=5000, output_tokens=10)
    return Mixture(id="m", stages=STAGES, parts=((3.0, small(id="m.0")), (1.0, long)))


def test_each_part_has_its_share() -> None:
    arrivals = drawn(_mixture()) + drawn(_mixture(), 1)

    share = sum(arrival.prompt.tokens == 5000 for arrival in arrivals) / len(arrivals)

    # Four standard deviations of a share of a quarter in about 400.
    assert abs(share - 0.25) < 4 * 0.022


def test_the_longest_request_is_that_of_the_longest_part() -> None:
    assert _mixture().longest_tokens == 5010


def test_parts_of_one_kind_share_nothing() -> None:
    both = Mixture(id="m", stages=STAGES, parts=((1, small(id="m.0")), (1, small(id="m.1"))))

    assert len({arrival.prompt for arrival in drawn(both)}) == 12
