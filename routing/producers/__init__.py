"""State between decisions: each producer keeps one kind of knowledge and fills table columns.

May go in: indexes, counters, estimators. May not: I/O, a clock, threads, another producer.
"""
