"""A project's own pages: its cases, its lists, its commits; and the form that adds one."""
