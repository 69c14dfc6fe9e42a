"""DET1xx: what is drawn, and from which generators."""
