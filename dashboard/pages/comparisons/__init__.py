"""Any two sides of a project beside each other, as a page, as files, and as drawn phases."""
