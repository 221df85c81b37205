"""What watches a measured process from outside: its start and end, its tree, its telemetry."""
