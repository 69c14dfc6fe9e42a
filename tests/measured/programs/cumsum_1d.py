import hashlib
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(2000000))

    def forward(self):
        return torch.cumsum(self.w, 0)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    pass
    optimizer.zero_grad()
    loss = model().square().mean()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
