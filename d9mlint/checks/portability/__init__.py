"""DET8xx: what is not the same on another machine."""
