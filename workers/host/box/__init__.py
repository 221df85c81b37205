"""The box in which code runs that somebody pushed: namespaces, mounts, limits."""
