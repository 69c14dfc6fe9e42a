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
        self.fc = nn.Linear(64, 32)

    def forward(self, x, y):
        e = self.fc(x)
        d = torch.cdist(e, e)
        same = y[:, None] == y[None]
        hardest = (d * same).max(1).values
        nearest = (d + 1e3 * same).min(1).values
        return F.relu(hardest - nearest + 0.3).mean() + F.pdist(e).mean()


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(256, 64, device=device)
    y = torch.randint(0, 16, (256,), device=device)
    optimizer.zero_grad()
    loss = model(x, y)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
