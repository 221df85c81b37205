"""What is said of the settings and the running of a site: of rights, channels, triggers and jobs."""
