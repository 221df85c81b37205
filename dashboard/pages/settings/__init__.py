"""The settings of a project, a file for each of their sections."""
