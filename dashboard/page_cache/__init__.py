"""Pages that are made once for as long as they stay true, and sent once to who has them.

What a page shows is in Postgres. Triggers on every table stamp what is written (`database_triggers`). The
stamps that a request sees are the revision of what it would show (`revisions`). A page that was made at that
revision is answered again to the same visitor at the same address (`dashboard.middleware.page_caching`), out
of this process' memory (`memory`).
"""
