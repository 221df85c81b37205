"""How long the pages of a site full of history take: `make bench-pages`."""
