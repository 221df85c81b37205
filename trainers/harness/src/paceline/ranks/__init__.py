"""What several ranks of one training took: who waits for whom, and for how long."""
