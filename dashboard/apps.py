from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Paceline"

    def ready(self) -> None:
        from dashboard import checks  # noqa: F401  (importing registers them)
