"""Base classes and mechanisms that every app may use; no tables of its own."""
