from django.contrib import admin
from django.urls import include, path

from dashboard import health, prometheus

handler500 = "dashboard.error_pages.show_server_error"

urlpatterns = [
    path("healthz", health.report_liveness, name="healthz"),
    path("readyz", health.report_readiness, name="readyz"),
    path("metrics", prometheus.report_metrics, name="metrics"),
    path("api/v1/", include("dashboard.api.urls")),
    path("admin/", admin.site.urls),
    path("", include("dashboard.triggers.urls")),
    path("", include("dashboard.pages.urls")),
]
