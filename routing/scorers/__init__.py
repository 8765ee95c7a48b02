"""Scorers of the weighted policy: one file per plugin, found by a scan of this folder."""
