"""What administrators of the site keep: its accounts, and its jobs that failed."""
