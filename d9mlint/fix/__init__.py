"""Fixes: text edits on the source, applied in rounds, never leaving a file that does not parse."""
