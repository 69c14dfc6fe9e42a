"""DET7xx: text and samples that are generated."""
