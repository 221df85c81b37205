"""What runs inside the measured process: its entry, the marks, the clock, the device, the memory."""
