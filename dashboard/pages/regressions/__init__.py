"""The inbox, the page of a regression, and what became of a project's alarms."""
