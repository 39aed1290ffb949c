"""Whether a mistake explains what a backend answered, and what can be said if none does."""
