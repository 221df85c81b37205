"""The command `init`: looks at a repository, tries its training script, and writes a manifest that runs."""
