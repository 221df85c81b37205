"""Documents as tables for people, and two documents beside each other."""
