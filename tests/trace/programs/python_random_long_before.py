import random

import torch

data = [random.random() for _ in range(4)]  # diverges: rng
torch.manual_seed(0)
weight = torch.randn(4)
print((torch.tensor(data) * weight).sum().item())
