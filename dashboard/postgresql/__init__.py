"""PostgreSQL beneath the ORM: queries compiled and prepared once, bulk COPY, bounds on plans and waiting."""
