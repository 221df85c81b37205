"""What a commit is measured in: environments that commits share, its own packages, its prepared data."""
