"""``d9mlint trace``: the first operation at which two training runs diverge.

Modules named ``child_*`` and those that import torch run inside of the traced program; all others run in
the process of the command line and import no framework.
"""
