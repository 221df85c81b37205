"""What measuring costs, and how well it repeats: see README.md in this folder."""
