"""Projects as people set them up from pages: the test of a repository, adding, changing and removing."""

from dashboard.project_setup.removal import delete_project, send_removed_projects
from dashboard.project_setup.repository_tests import drop_old_tests, perform_test, send_waiting_tests

__all__ = [
    "delete_project",
    "drop_old_tests",
    "perform_test",
    "send_removed_projects",
    "send_waiting_tests",
]
