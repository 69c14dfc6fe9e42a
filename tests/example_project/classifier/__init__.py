from .model import Classifier
from .seeding import seed_everything

__all__ = ["Classifier", "seed_everything"]
