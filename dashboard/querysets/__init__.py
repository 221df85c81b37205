"""What pages ask of the database: named reads, each a fixed number of queries however long the history."""
