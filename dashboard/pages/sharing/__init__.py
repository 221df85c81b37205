"""Pictures, badges and bare pages for other places, and the addresses that are made for them."""
