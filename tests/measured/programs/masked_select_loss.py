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
        self.fc = nn.Linear(32, 100)

    def forward(self, x):
        return self.fc(x)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(64, 50, 32, device=device)
    y = torch.randint(0, 100, (64, 50), device=device)
    mask = torch.rand(64, 50, device=device) > 0.3
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x)[mask], y[mask]) + torch.masked_select(model(x).sum(-1), mask).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
