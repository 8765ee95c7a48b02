"""What a decision is made of and how it is made: pure functions and plain state.

May go in: types, formulas, policies. May not: I/O, a clock, threads, loggers, environment; time and
randomness are arguments. Imports the standard library, numpy, xxhash and msgspec only.
"""
