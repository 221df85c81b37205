"""PostgreSQL beneath the ORM: bulk COPY, timestamps as it writes them, bounds on planning and on waiting."""
