"""Which version of a row somebody has seen."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.common.versions import tag_of, version_of

TIME = datetime(2026, 11, 30, tzinfo=UTC)


@dataclass
class Row:
    updated_at: Any = TIME
    observed_at: Any = None


def test_the_tag_has_a_version_and_an_observation() -> None:
    unseen, seen = tag_of(Row()), tag_of(Row(observed_at=TIME))

    assert version_of(unseen) == version_of(seen)
    assert unseen != seen


def test_a_row_that_does_not_know_when_it_was_written_has_no_tag() -> None:
    assert tag_of(Row(updated_at=None)) is None


@pytest.mark.parametrize("tag", ['W/"12.3381"', 'W/"12"', '"12"', '"12.0"', ' W/"12.1" '])
def test_every_form_of_a_tag_gives_the_version(tag: str) -> None:
    assert version_of(tag) == "12"
