"""What is said of regressions: their size, their cause, their proof, and the alerts about them."""
