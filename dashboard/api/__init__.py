"""The HTTP API under /api/v1/."""
