"""Caches and the pool that reads files."""
