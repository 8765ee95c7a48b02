"""Recorded traffic of other programs and of ours as requests. Text comes in; no file is opened."""
