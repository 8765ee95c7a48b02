"""A whole installation on one machine with simulated engines: what `make demo` runs.

Nothing of the product imports from here. What the demo writes goes through the same services as a
person's click; what it starts are the product's own programs.
"""
