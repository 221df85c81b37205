"""The page of a run, a file for each of its parts, and what runs cost."""
