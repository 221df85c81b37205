"""Small training scripts without a mark, one per framework: for tests, and for the part `counters`."""
