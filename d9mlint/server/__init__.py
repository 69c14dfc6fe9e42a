"""The language server: ``d9mlint server``."""
