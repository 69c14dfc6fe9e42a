"""From text to structs: the only package that knows libcst (imported when a file has to be parsed)."""
