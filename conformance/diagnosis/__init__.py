"""What explains the failures of a run: known mistakes, and other failures."""
