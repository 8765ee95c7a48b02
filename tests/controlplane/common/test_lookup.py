"""Rows by id or by name."""

import pytest
from django.db.models import Q

from controlplane.common.lookup import rows_named
from controlplane.tenancy.models import Project
from tests.factories import make_project

pytestmark = pytest.mark.django_db


def test_an_id_is_an_id_and_everything_else_a_name() -> None:
    first, second = make_project(slug="main"), make_project(slug="other")

    assert rows_named(Project.objects.all(), str(first.pk), by="slug") == [first]
    assert rows_named(Project.objects.all(), "other", by="slug") == [second]


@pytest.mark.parametrize("text", ["nobody", "", "a\0b", "01a22e34-0954-7b95-99bd-9fe17af6f6d3"])
def test_what_nobody_is_called_gives_no_row(text: str) -> None:
    make_project()

    assert rows_named(Project.objects.all(), text, by="slug") == []


def test_without_a_column_there_are_ids_only() -> None:
    make_project(slug="main")

    assert rows_named(Project.objects.all(), "main", by=None) == []


def test_all_namesakes_come_and_preferred_ones_alone() -> None:
    first, second = make_project(slug="main"), make_project(slug="main")
    rows = Project.objects.order_by("created_at")

    assert rows_named(rows, "main", by="slug") == [first, second]
    assert rows_named(rows, "main", by="slug", first=Q(pk=second.pk)) == [second]
    assert rows_named(rows, "main", by="slug", first=Q(name="none")) == [first, second]
