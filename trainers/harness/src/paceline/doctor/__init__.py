"""Tries the harness on this host: times, counters and warnings against known work."""
