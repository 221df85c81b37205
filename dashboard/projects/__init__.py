"""Projects: registered, found by name or a former name, with the files that the site keeps for them."""
