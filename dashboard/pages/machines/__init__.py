"""The machines that measure: their list, by which hosts join, and the page of each."""
