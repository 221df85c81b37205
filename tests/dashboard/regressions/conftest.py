from __future__ import annotations

import pytest

from dashboard.models import Case, Project
from tests.dashboard import factories


@pytest.fixture
def case(project: Project) -> Case:
    return factories.create_case(project)
