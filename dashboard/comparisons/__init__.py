"""Any two commits, branches, tags, runs or cases beside each other, by what is stored of them.

No process is started: revisions are those that the site knows, values are those of stored runs.
"""
