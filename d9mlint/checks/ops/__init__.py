"""DET4xx: operations whose results vary."""
