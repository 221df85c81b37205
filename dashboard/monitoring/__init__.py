"""How the site itself is doing, for monitors: does it live, can it work, and its numbers for Prometheus."""
