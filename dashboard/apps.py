from typing import Any

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Paceline"

    def ready(self) -> None:
        from dashboard import system_checks  # noqa: F401  (importing registers them)
        from dashboard.access import sign_in_records  # noqa: F401
        from dashboard.access import system_checks as rule_checks  # noqa: F401
        from dashboard.forges.signals import comment_received, pull_request_received
        from dashboard.page_cache.database_triggers import connect_installation
        from dashboard.postgresql.query_planning import connect_limit
        from dashboard.postgresql.timestamps import connect_loader

        connect_limit()
        connect_loader()
        connect_installation(self)
        pull_request_received.connect(handle_pull_request)
        comment_received.connect(handle_comment)


def handle_pull_request(**received: Any) -> None:
    # Not above: it imports numpy, for which every command would wait.
    from dashboard.pull_requests.receiving import receive_pull_request

    receive_pull_request(**received)


def handle_comment(**received: Any) -> None:
    from dashboard.pull_requests.receiving import receive_comment

    receive_comment(**received)
