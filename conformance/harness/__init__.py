"""Reaches backends: turns an implementation into something that answers questions.

Nothing here knows what the right answer is; the truth is not importable from this folder.
"""
