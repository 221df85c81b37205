"""Scripts whose figures are known before they are measured."""
