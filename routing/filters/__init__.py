"""Filters of the weighted policy: one file per plugin or family, found by a scan of this folder."""
