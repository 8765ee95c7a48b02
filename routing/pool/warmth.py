"""Which decode endpoints still wait for their first ordinary prompt.

A decode endpoint whose first request is a pull may die of it, so a driver that says so sends each
fresh one an ordinary prompt first; until that was answered no pair has it as its end. Without such
a driver (simulator, replay) every endpoint is warm.
"""

from routing.pool.knowledge import Knowledge


class Warmth:
    """Of one pool's decode endpoints."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def begin(self) -> None:
        """Somebody sends first prompts from now on: what is there and what comes begins cold.

        A second call changes nothing.
        """
        known = self._known
        if known.warms:
            return
        known.warms = True
        for row in known.pairs.column_of:
            known.cool(row)

    def cold(self) -> tuple[str, ...]:
        """Ids of endpoints that wait."""
        known = self._known
        return tuple(
            known.table.ids[row]
            for row, column in known.pairs.column_of.items()
            if known.pairs.is_cold[column]
        )

    def out_of_reach(self, endpoint_id: str) -> None:
        """Nobody takes connections there, so that whoever does next is a fresh process.

        Its metrics will say so, but a page may be read as late as ten seconds after its start.
        """
        known = self._known
        row = known.table.row_of.get(endpoint_id)
        if row is not None:
            known.cool(row)

    def warmed(self, endpoint_id: str, instance: str) -> None:
        """An endpoint answered its first prompt; another life of it is still cold."""
        known = self._known
        row = known.table.row_of.get(endpoint_id)
        if row is not None and known.table.instances[row].spec.instance == instance:
            known.pairs.set_cold(row, is_cold=False)
