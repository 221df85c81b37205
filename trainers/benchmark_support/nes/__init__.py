"""Games of our own for the NES: an assembler, the cartridge that it fills, and the console that plays it."""
