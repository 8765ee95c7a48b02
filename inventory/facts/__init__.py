"""Figures and names that ship with the product, each with its source, and the code that reads them.

Plain data: no Django and no rows here. Prices do not belong here: they are an operator's own.
"""
