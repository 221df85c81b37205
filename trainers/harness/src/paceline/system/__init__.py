"""What the operating system tells of processes and processors; the part of /proc that several rooms read."""
