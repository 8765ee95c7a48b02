"""Published results against simulated ones: runs, bands, a table. Nothing here is fitted."""
