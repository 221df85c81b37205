"""What changes, verdicts and triage make of a project's regressions: pure, from facts to a decision."""
