"""Checks of a change plan; each says pass, warn or block with its numbers and one sentence."""
