"""Drivers with sockets, clocks and files around the pure core: the embedded proxy, its admin port.

May go in: I/O of the router. May not: rules about which endpoint is best (`routing.core` and
`routing.pool` have them), Django, a database. The request path never waits for the control plane.
"""
