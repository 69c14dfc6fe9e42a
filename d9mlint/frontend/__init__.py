"""From text to the intermediate representation; the only package that imports libcst."""
