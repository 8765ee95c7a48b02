"""Envoy's external processor: the endpoint-picker protocol of InferencePool gateways."""
