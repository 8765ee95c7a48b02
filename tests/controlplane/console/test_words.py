"""Every state of every table has a glyph and a word of its own."""

import pytest
from django.db.models import TextChoices

from controlplane.audit.models import AuditEntry
from controlplane.console import words
from controlplane.operations.models import Operation
from controlplane.operations.models.operation import OperationStep
from controlplane.serving.models import ChangePlan, Endpoint, Pool, Role, RouterPush, Wave
from controlplane.telemetry.models import Evidence
from inventory.models import Accelerator, Finding, Node
from inventory.models.words import Health

STATES: list[type[TextChoices]] = [
    Accelerator.State,
    AuditEntry.Result,
    ChangePlan.State,
    Endpoint.State,
    Finding.State,
    Health,
    Node.State,
    Operation.State,
    OperationStep.State,
    Pool.State,
    RouterPush.State,
    Wave.State,
]


@pytest.mark.parametrize("states", STATES, ids=lambda states: states.__qualname__)
def test_every_state_has_a_look(states: type[TextChoices]) -> None:
    unlisted = [value for value in states.values if not words.is_listed(value)]

    assert unlisted == []


def test_an_unlisted_state_shows_itself_as_unknown() -> None:
    assert words.look("half_done") == words.Look("off", "unk", "half done")


def test_roles_have_letters_and_none_is_unassigned() -> None:
    assert [words.role(role)[0] for role in [*Role.values, None, "other"]] == list("pdbik")


def test_every_evidence_word_has_its_own_text() -> None:
    assert len({str(words.method(word)) for word in Evidence.values}) == len(Evidence.values)


def test_confidence_checks_and_vendors_fall_back_to_their_code() -> None:
    assert words.confidence("odd") == "odd"
    assert words.check("odd") == "odd"
    assert words.operation("odd") == "odd"
    assert words.vendor("odd") == "odd"
    assert words.vendor("intel-gaudi") == "Intel"
