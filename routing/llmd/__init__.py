"""llm-d's EndpointPickerConfig: read, checked, converted to our policy and back, written.

Field names and defaults are those of llm-d Router 0.10. What has no counterpart here is kept,
written back unchanged, and reported by type and path.
"""
