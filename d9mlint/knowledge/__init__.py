"""The knowledge of d9mlint: rule pages and versioned facts about libraries, loaded from ``rules/``."""
