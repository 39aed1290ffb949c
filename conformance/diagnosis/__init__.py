"""What explains the failures of a run. Loaded only when something failed: it needs the faults."""
