"""Django's backend of PostgreSQL, whose connections may be told how long to wait (see `database_waits`)."""
