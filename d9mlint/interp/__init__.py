"""The linked program: modules, entry points, and an abstract run of each of them."""
