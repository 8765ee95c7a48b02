"""From a plugin's entry in the document to its object; the folders are scanned once.

Every refusal names the field and what is allowed there.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import msgspec

from routing import filters, pickers, scorers
from routing.core.document import Plugin
from routing.core.refusals import DocumentError, refusal
from routing.core.scoring import PluginType
from routing.llmd.other_types import TYPES, spec_of
from routing.pool.policies import deciders
from routing.pool.policies.memory import PRECISE, ApproximateProducer


def _found_in(package: ModuleType) -> dict[str, PluginType]:
    found: dict[str, PluginType] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        for plugin in importlib.import_module(f"{package.__name__}.{module}").PLUGINS:
            found[plugin.type] = plugin
    return found


FILTERS = _found_in(filters)
SCORERS = _found_in(scorers)
PICKERS = _found_in(pickers)
IN_PROFILES: dict[str, PluginType] = FILTERS | SCORERS | PICKERS
"""Types that a profile may name."""
_OUTSIDE: tuple[PluginType, ...] = (*deciders.PLUGINS, ApproximateProducer)
OUTSIDE: dict[str, PluginType] = {plugin.type: plugin for plugin in _OUTSIDE}
"""Types that stand in `policy.plugins` and do something here."""
INERT: dict[str, PluginType] = {
    name: parameters
    for name in (
        PRECISE,
        "inflight-load-producer",
        "disagg-headers-handler",
        "metrics-data-source",
        "core-metrics-extractor",
    )
    if (parameters := TYPES[name].parameters) is not None
}
"""Types that name what the router does anyway: their parameters are checked, without effect."""


def build(plugin: Plugin, known: dict[str, PluginType], pointer: str) -> Any:
    """The plugin with its parameters. Raises DocumentError for another type or parameter."""
    plugin_type = known.get(plugin.type)
    if plugin_type is None:
        problem = f"No plugin of type '{plugin.type}' may stand here."
        upstream = spec_of(plugin.type)
        if upstream is not None and not upstream.has_counterpart:
            problem = f"The type '{plugin.type}' of llm-d has no counterpart here."
        raise DocumentError(f"{pointer}/type", problem, tuple(sorted(known)))
    try:
        return msgspec.convert(plugin.parameters, plugin_type)
    except msgspec.ValidationError as error:
        found = refusal(str(error), msgspec.json.schema(plugin_type))
        raise DocumentError(
            f"{pointer}/parameters{found.pointer}", found.message, found.allowed
        ) from error
