from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from dashboard.accounts.views import redirect_to_sign_in
from dashboard.monitoring import health, prometheus

handler400 = "dashboard.error_pages.show_bad_request"
handler404 = "dashboard.error_pages.show_not_found"
handler500 = "dashboard.error_pages.show_server_error"

urlpatterns = [
    path("healthz", health.report_liveness, name="healthz"),
    path("readyz", health.report_readiness, name="readyz"),
    path("metrics", prometheus.report_metrics, name="metrics"),
    path("api/v1/", include("dashboard.api.urls")),
    # One door: the administration has no sign-in of its own.
    path("admin/login/", redirect_to_sign_in, name="admin-sign-in"),
    path(
        "admin/password_change/",
        RedirectView.as_view(pattern_name="account_change_password"),
        name="admin-password",
    ),
    path("admin/", admin.site.urls),
    path("", include("dashboard.pages.urls")),
    path("", include("dashboard.accounts.urls")),
    path("", include("dashboard.triggers.urls")),
]
