"""What changes, verdicts and people's words make of a project's regressions: pure, from facts to a decision."""
