"""The truth of a case: its values over balls, and the largest error of an honest form of it."""
