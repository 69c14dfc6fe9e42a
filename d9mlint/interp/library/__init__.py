"""Models of library functions that need code."""
