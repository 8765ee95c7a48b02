"""Usage segments in, hourly usage out, reconciliation with the engines' own counters."""
