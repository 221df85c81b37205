from django.contrib import admin
from django.urls import include, path

from dashboard import health

urlpatterns = [
    path("healthz", health.report_liveness, name="healthz"),
    path("readyz", health.report_readiness, name="readyz"),
    path("admin/", admin.site.urls),
    path("", include("dashboard.triggers.urls")),
    path("", include("dashboard.pages.urls")),
]
