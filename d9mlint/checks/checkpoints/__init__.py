"""DET6xx: what a program that is resumed goes on from."""
