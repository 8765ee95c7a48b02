"""Which accelerators should do what: placements enumerated, bounded, and the best few simulated.

Pure, like the simulator it drives. `search.advise` is the entry.
"""
