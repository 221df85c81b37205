"""How right a site was about planted histories, and how it stands other work on its machine."""
