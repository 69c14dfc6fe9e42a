"""DET2xx: the order in which data comes, and what its workers draw."""
