"""What people look at. Pages only read, save for the button that cancels a run."""
