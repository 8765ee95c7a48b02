"""PostgreSQL and Valkey for one machine, from their wheels; production gives URLs instead.

No Django in here: settings read the addresses, and entry points start what is missing.
"""
