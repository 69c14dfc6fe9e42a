import os
import random

import torch

path = f"run-{random.random()}"
torch.manual_seed(0)
weight = torch.randn(4)
print((torch.tensor([float(os.getpid())]) * weight).sum().item())  # diverges: input
