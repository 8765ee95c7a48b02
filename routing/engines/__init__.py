"""What an engine says and wants to hear: one file per engine, pure functions of bytes.

May go in: metric names, request legs of prefill/decode protocols, usage in answers. May not: I/O, a
clock, threads, loggers. The last line of a file is `ENGINE: Engine = …`; `base.py` is the only
neighbour that may be imported.
"""
