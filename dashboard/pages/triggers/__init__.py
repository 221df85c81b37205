"""Asking for runs, and the page of what was asked for."""
