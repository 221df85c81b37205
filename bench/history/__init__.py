"""A site full of history that nobody measured: for figures of speed, and to look at crowded pages."""
