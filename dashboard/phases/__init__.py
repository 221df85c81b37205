"""Phases of a step: their paths, and what each adds to a number that is read off a sweep."""
