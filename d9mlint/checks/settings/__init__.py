"""DET3xx: switches and variables of the libraries, and work that is decided by the machine."""
