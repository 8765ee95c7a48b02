"""A server of gRPC, no more of it than gateways need: HTTP/2, messages, TLS if wanted.

Written by hand because a picker must not cost more than what it saves: a request is a handful of
small frames, and Python's gRPC library spends more on each message than a decision takes; see
docs/decisions/0022.
"""
