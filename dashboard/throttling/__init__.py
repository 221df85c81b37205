"""How often visitors may do what costs the site something, and how long they wait after failed sign-ins.

Kept in Postgres, counted in one statement: all web processes see the same, and the queue may be away.
`rates` and `attempts` count, `refusals` answers; the table of what is limited is in
`dashboard.middleware.limited_requests`.
"""
