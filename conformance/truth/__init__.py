"""Proves and explains: the reference over balls, the bounds, the faults.

Loaded to freeze and check the specification, to answer as a fault, and to explain failures; a
passing run of a real backend loads nothing from here. Only ``balls`` needs python-flint.
"""
