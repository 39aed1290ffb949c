"""Holds the specification to the oracle: what is frozen, claimed and rejected."""
