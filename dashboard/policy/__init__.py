"""What a project's policy measures, when, and against what it is read. Its decisions are pure functions."""
