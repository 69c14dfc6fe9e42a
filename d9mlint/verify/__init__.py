"""The runtime wing's first half: ops are run several times and their results compared byte for byte.

The parent process never imports a framework; torch and TensorFlow live in child processes only.
"""
