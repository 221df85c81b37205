"""The site as a host sees it: its calls, its outages, and documents that wait for it."""
