"""Exact prompt identity: the token ids that an engine will compute, without asking it each time.

A conversation is rendered with the model's chat template, cut where tokens cannot reach across, and
each piece is tokenised once. Pure: texts and ids in, block keys out; who asks an engine for the ids
of a piece is a driver.
"""
