"""Scripts and styles by names that hold a hash of what is in them: a browser that has one never asks again.

There is no collectstatic step to forget: names are made from the files as they are when a process starts
(`names`), and what is compressed is kept in PACELINE_HOME (`packing`).
"""
