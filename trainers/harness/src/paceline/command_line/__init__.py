"""The commands of `python -m paceline`: their arguments, and what they read and print."""
