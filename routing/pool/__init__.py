"""One pool's decision maker: knowledge of the producers, filters and policies behind one object.

May go in: what joins core and producers. May not: I/O, a clock, threads, loggers.
"""
