"""What is said of two sides beside each other: of comparisons, experiments and claims."""
