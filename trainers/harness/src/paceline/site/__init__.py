"""The client of a Paceline site: a document is posted to it, a commit is checked by it."""
