"""A foreign key over two columns, which Django's own constraints do not offer."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.constraints import BaseConstraint


class SameVendorConstraint(BaseConstraint):
    """The row's vendor is the vendor of the row it points at.

    `(field, vendor)` references `(id, vendor)` of the other table, which must declare that pair
    unique. The statement is deferred to the end of the migration, as Django does for foreign keys,
    so that the unique pair exists by then.
    """

    def __init__(self, *, field: str, name: str, violation_error_message: Any = None) -> None:
        super().__init__(name=name, violation_error_message=violation_error_message)
        self.field = field

    def __eq__(self, other: object) -> bool:
        """Equal rules make no migration."""
        if not isinstance(other, SameVendorConstraint):
            return NotImplemented
        return (self.name, self.field, self.violation_error_message) == (
            other.name,
            other.field,
            other.violation_error_message,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.field))

    def create_sql(
        self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None
    ) -> Any:
        """Queue the statement; nothing is to be run at once."""
        if model is None or schema_editor is None:
            return None
        target = getattr(model, self.field).field.related_model
        quote = schema_editor.quote_name
        schema_editor.deferred_sql.append(
            f"ALTER TABLE {quote(_table(model))} ADD CONSTRAINT {quote(self.name)} "
            f"FOREIGN KEY ({quote(self.field + '_id')}, {quote('vendor')}) "
            f"REFERENCES {quote(_table(target))} ({quote('id')}, {quote('vendor')})"
        )
        return None

    def constraint_sql(
        self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None
    ) -> Any:
        """Nothing inside CREATE TABLE: the other table's unique pair may not exist yet."""
        return self.create_sql(model, schema_editor)

    def remove_sql(
        self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None
    ) -> Any:
        """Statement that drops the constraint."""
        if model is None or schema_editor is None:
            return None
        quote = schema_editor.quote_name
        return f"ALTER TABLE {quote(_table(model))} DROP CONSTRAINT {quote(self.name)}"

    def validate(
        self,
        model: type[models.Model],
        instance: models.Model,
        exclude: Any = None,
        using: str = DEFAULT_DB_ALIAS,
    ) -> None:
        """Raise ValidationError in words before the database refuses the row."""
        other = getattr(instance, self.field, None)
        if other is not None and other.vendor != instance.vendor:  # type: ignore[attr-defined]  # both tables have it
            raise ValidationError(self.get_violation_error_message())

    def deconstruct(self) -> Any:
        """Path and arguments for the migration."""
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "field": self.field}


def _table(model: type[models.Model]) -> str:
    return model._meta.db_table  # noqa: SLF001  documented API of Django in spite of its name
