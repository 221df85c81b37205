"""A commit's code in a folder, and what is put into it beside the commit's own files."""
