import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

application = get_wsgi_application()

# Below: Django has to be set up first.
from django.conf import settings  # noqa: E402

from dashboard import garbage_collection, site_outages  # noqa: E402
from dashboard.postgresql.database_waits import limit_waits  # noqa: E402

limit_waits(settings.PACELINE_DATABASE_WAIT_SECONDS)
garbage_collection.freeze_imported_objects()
site_outages.start_web_heartbeat()
