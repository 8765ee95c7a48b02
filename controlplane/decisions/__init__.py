"""Sampled decisions of the routers: why a request went where it went."""
