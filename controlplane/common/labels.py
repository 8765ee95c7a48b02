"""How a row is named in rows that outlive it."""

from django.db.models import Model

LENGTH = 200


def type_label(row: Model | None) -> str:
    """`app.model` in lower case; "" for no row."""
    return row._meta.label_lower if row is not None else ""  # noqa: SLF001 - Django's public model API


def key_label(row: Model | None) -> str:
    """Primary key as text; "" for no row."""
    return str(row.pk) if row is not None else ""


def text_label(row: Model | None) -> str:
    """What the row calls itself, cut to LENGTH; "" for no row."""
    return str(row)[:LENGTH] if row is not None else ""


def view_action(model: type[Model]) -> str:
    """The permission to read rows of a table: `app.view_model`."""
    meta = model._meta  # noqa: SLF001 - Django's public model API
    return f"{meta.app_label}.view_{meta.model_name}"


def kind_label(row: Model | type[Model]) -> str:
    """The word for such a row in the reader's language."""
    return str(row._meta.verbose_name)  # noqa: SLF001 - Django's public model API
