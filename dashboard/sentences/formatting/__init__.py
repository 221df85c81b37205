"""How numbers, names and the sizes of changes are written, everywhere alike."""
