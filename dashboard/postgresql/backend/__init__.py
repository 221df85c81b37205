"""Django's backend of PostgreSQL, whose connections may be given a time to wait (see `database_waits`)."""
