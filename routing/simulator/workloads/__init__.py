"""What arrives: a kind of traffic is a file, a named one an entry of `catalogue.yaml`."""
