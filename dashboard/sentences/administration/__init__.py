"""What is said of the settings and the running of a site: of channels, policies, triggers and jobs."""
