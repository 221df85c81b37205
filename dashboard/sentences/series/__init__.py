"""What is said of the points and the changes of one series."""
