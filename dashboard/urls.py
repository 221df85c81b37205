from django.contrib import admin
from django.urls import include, path

from dashboard import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("", include("dashboard.triggers.urls")),
    path("", include("dashboard.pages.urls")),
]
