"""Where a step's time went: the events of one profiled repetition, read, explained and exported."""
