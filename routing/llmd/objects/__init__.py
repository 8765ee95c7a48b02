"""Kubernetes objects of an inference gateway, read as inputs: pools, routes, objectives, rewrites.

Text in, typed objects and effects on a pool document out; nothing here asks a cluster.
"""
