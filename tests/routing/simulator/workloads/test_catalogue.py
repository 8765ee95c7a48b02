"""Every workload of the catalogue can be built, says where it is from, and is what it says."""

import pytest

from routing.simulator.workloads import catalogue
from routing.simulator.workloads.building import build
from tests.architecture.sources import ROOT
from tests.routing.simulator.workloads.draws import drawn

PUBLISHED = {
    "guide-6k": (7577, 17, 502),
    "nxt-granite-6k": (7546, 8, 260),
    "nxt-sarvam-10k": (11617, 10, 320),
    "nxt-sarvam-6k": (7467, 13, 380),
    "nxt-decode-heavy": (1049, 6, 200),
    "nxt-pd-sarvam": (8307, 9, 540),
    "pd-5k": (5000, 1, 120),
}
"""Measured prompt tokens, stages, seconds of sending."""


@pytest.mark.parametrize("name", catalogue.ids())
def test_it_can_be_built_and_names_its_source(name: str) -> None:
    entry = catalogue.entry(name)
    workload = build(name).workload

    assert entry is not None
    assert entry.about
    assert entry.source
    assert entry.confidence in {"measured", "claimed", "recorded", "chosen"}
    assert workload.id == name
    assert drawn(workload, len(workload.stages) - 1)


@pytest.mark.parametrize(("name", "figures"), PUBLISHED.items())
def test_published_ones_have_their_lengths_and_ladders(
    name: str, figures: tuple[int, int, int]
) -> None:
    workload = build(name).workload
    tokens, stages, seconds = figures

    assert {arrival.prompt.tokens for arrival in drawn(workload)} == {tokens}
    assert len(workload.stages) == stages
    assert sum(stage.seconds or 0 for stage in workload.stages) == seconds


def test_prompts_fit_into_a_context_of_32768_tokens() -> None:
    longest = {name: build(name).workload.longest_tokens for name in catalogue.ids()}

    assert max(longest.values()) <= 32768


def test_the_documentation_names_every_workload() -> None:
    text = (ROOT / "docs/simulation.md").read_text()

    assert [name for name in catalogue.ids() if f"`{name}`" not in text] == []


def test_an_unknown_name_is_none() -> None:
    assert catalogue.entry("guide-7k") is None
