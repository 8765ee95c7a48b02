"""Names of rows in rows that outlive them."""

import pytest

from controlplane.common import labels
from controlplane.tenancy.models import Project
from tests.factories import make_project

pytestmark = pytest.mark.django_db


def test_a_row_has_a_type_a_key_and_a_text() -> None:
    row = make_project(slug="chat")

    assert labels.type_label(row) == "tenancy.project"
    assert labels.key_label(row) == str(row.pk)
    assert labels.text_label(row) == "chat"
    assert labels.kind_label(row) == "project"
    assert labels.view_action(Project) == "tenancy.view_project"


def test_no_row_has_empty_ones() -> None:
    assert (labels.type_label(None), labels.key_label(None), labels.text_label(None)) == (
        "",
        "",
        "",
    )


def test_a_long_text_is_cut() -> None:
    assert len(labels.text_label(Project(slug="x" * 500))) == labels.LENGTH
