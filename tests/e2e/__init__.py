"""A package, so that one demo serves all its tests and is stopped before other tests begin."""
