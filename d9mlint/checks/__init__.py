"""The rules: one module a family. They listen to an analysis run and say what they find."""
