"""The files of a project as modules, and their entry points."""
