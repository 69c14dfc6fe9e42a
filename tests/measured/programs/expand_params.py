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
        self.cls = nn.Parameter(torch.randn(1, 1, 64))
        self.pos = nn.Parameter(torch.randn(1, 197, 64))

    def forward(self, x):
        return torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(256, 196, 64, device=device)
    out = model(x)
    optimizer.zero_grad()
    loss = (out * torch.randn_like(out)).sum()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
