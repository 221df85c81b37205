"""Process trees that a host starts, and that never outlive it."""
