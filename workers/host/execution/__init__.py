"""What was claimed, from its code to its result: runs and experiments, launched under a lease."""
