#!/bin/sh
# Makes the site's role and database, once, when the server's data folder is new: the image runs what is mounted at
# /docker-entrypoint-initdb.d. The role owns its database and is no superuser; migrations need no more.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE paceline LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE paceline OWNER paceline;
-- An imported archive's references are checked as they are read: the site need not have the server look them up again.
GRANT SET ON PARAMETER session_replication_role TO paceline;
-- The superuser is for `docker compose exec postgres psql -U postgres` alone: without a password no network lets it in.
ALTER ROLE CURRENT_USER PASSWORD NULL;
SQL
