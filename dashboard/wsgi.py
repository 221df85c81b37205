import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

application = get_wsgi_application()

# Below: Django has to be set up first.
from dashboard import garbage_collection, site_outages  # noqa: E402

garbage_collection.freeze_imported_objects()
site_outages.start_web_heartbeat()
