"""Proves and explains: the reference over balls, the bounds, the faults.

Loaded to freeze and check the specification, to answer as a fault, and to explain failures; a
passing run of a real backend loads nothing from here. Only ``arithmetic.balls`` needs flint.

Rooms, each using those before it: ``arithmetic`` (numbers on a tape), ``reference`` (the rules of
the documents), ``faults`` (the rules done wrong), ``proof`` (values and bounds), ``effects`` (what
a fault does), ``diagnosis`` (whether it explains an answer), ``checking`` (freezes and checks).
"""
