"""`label-selector-filter` and the deprecated `by-label`: endpoints by their labels.

`matchLabels` and `matchExpressions` are those of a Kubernetes label selector, joined by AND, with
the operators In, NotIn, Exists and DoesNotExist; an empty selector keeps all. `by-label` keeps what
has one of `validValues` under `label`, and with `allowsNoLabel` also what has no such label.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from routing.core.scoring import Context, PluginParameters, PluginType
from routing.core.table import Flags

Labels = dict[str, str]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class Expression(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        needs_values = self.operator in ("In", "NotIn")
        if needs_values != bool(self.values):
            word = "needs" if needs_values else "takes no"
            raise ValueError(f"operator {self.operator} {word} values")

    def holds(self, labels: Labels) -> bool:
        """As Kubernetes evaluates it: NotIn holds without the label."""
        if self.operator == "Exists":
            return self.key in labels
        if self.operator == "DoesNotExist":
            return self.key not in labels
        return (labels.get(self.key) in self.values) == (self.operator == "In")


class LabelSelectorFilter(PluginParameters, frozen=True, kw_only=True):
    """Keeps endpoints that a selector matches."""

    type: ClassVar[str] = "label-selector-filter"
    match_labels: Labels = {}
    match_expressions: tuple[Expression, ...] = ()

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        return _kept(context, self._matches)

    def _matches(self, labels: Labels) -> bool:
        return all(labels.get(name) == value for name, value in self.match_labels.items()) and all(
            expression.holds(labels) for expression in self.match_expressions
        )


class ByLabel(PluginParameters, frozen=True, kw_only=True):
    """Keeps endpoints with one of some values under one label."""

    type: ClassVar[str] = "by-label"
    label: Annotated[str, msgspec.Meta(min_length=1)]
    valid_values: tuple[str, ...] = ()
    allows_no_label: bool = False

    def keep(self, context: Context) -> Flags:
        """See Filter."""
        return _kept(context, self._matches)

    def _matches(self, labels: Labels) -> bool:
        value = labels.get(self.label)
        return self.allows_no_label if value is None else value in self.valid_values


def _kept(context: Context, matches: Callable[[Labels], bool]) -> Flags:
    instances = context.table.instances
    return np.array([matches(instances[row].spec.labels) for row in context.rows], dtype=np.bool_)


PLUGINS: tuple[PluginType, ...] = (LabelSelectorFilter, ByLabel)
