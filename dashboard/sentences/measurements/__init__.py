"""What is said of runs, and of the machines and processes that were measured."""
