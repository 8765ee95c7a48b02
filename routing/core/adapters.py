"""Which adapters an instance has: in use, waiting to be loaded, loaded and idle."""

from dataclasses import dataclass, replace

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What one instance said last; empty sets and `None` before it said anything."""

    running: frozenset[str] = NOBODY
    """Requests use them at present."""
    waiting: frozenset[str] = NOBODY
    """Requests wait for them."""
    loaded: frozenset[str] = NOBODY
    """In the engine's list of models, used or not."""
    most: int | None = None
    """How many can run at once; `None` when the engine does not say."""

    def after(self, before: "Adapters") -> "Adapters":
        """This reading, with what only `before` knew of loaded ones; those in use are loaded."""
        return replace(self, loaded=self.loaded or before.loaded)

    def with_loaded(self, names: frozenset[str]) -> "Adapters":
        """The engine's list of models, read by itself."""
        return replace(self, loaded=names)
