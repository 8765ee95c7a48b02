"""The parts of a pool document, one topic a file; `routing.core.document` puts them together."""
