"""Simulated engines and a load generator: what stands in for accelerators in demo and tests.

May go in: a model of a vLLM server in virtual time, its wire protocols, and traffic for it. May not
go in: anything that production needs. Every figure that comes from here is labelled simulated.
"""
