"""Numbers and their roundings: doubles or proven balls, on a tape that gives derivatives."""
