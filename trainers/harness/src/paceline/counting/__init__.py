"""The counting repetition: what repeats exactly, counted in a process that isn't timed."""
