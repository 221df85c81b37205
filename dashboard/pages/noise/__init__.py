"""How far runs scatter, and the smallest step that is found there: for projects, machines and series."""
