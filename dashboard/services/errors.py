class ServiceError(Exception):
    """A service can't be started or has ended; the text is one sentence for people."""
