"""Envoy before the engines of a pool, with a router of ours as its picker."""
