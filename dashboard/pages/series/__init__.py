"""The page of a series: its trend or its phases over commits, its baseline, and the same as files."""
