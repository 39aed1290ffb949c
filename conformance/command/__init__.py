"""The command ``conformance``: what a person types, and what is printed in return."""
