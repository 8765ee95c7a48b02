"""Coefficients of engines and of a router from published stages, by simulating those stages."""
