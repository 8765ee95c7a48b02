"""The router's other faces: it decides, somebody else's proxy carries the request."""
