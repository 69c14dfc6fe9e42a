"""Measurements: their file format, and what they say about findings."""
