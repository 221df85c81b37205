"""The form that asks for an experiment, a project's list of them, and the page of each."""
