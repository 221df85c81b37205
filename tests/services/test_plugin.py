import redis
from django.db import connection

from dashboard.services import service_addresses


def test_the_database_is_the_embedded_one(db, settings):
    with connection.cursor() as cursor:
        cursor.execute("SELECT version(), inet_server_addr()")
        version, address = cursor.fetchone()
    assert connection.settings_dict["HOST"] == str(service_addresses(settings.PACELINE_HOME).socket_folder)
    assert version.startswith("PostgreSQL 18")
    assert address is None


def test_the_queue_is_the_embedded_one(settings):
    client = redis.Redis(unix_socket_path=str(service_addresses(settings.PACELINE_HOME).broker_socket))
    assert client.ping()
