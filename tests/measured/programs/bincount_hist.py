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
        self.fc = nn.Linear(16, 1)

    def forward(self, x):
        return self.fc(x)


ids = torch.randint(0, 50, (200000,), device=device)
weights = torch.rand(200000, device=device)
prior = torch.bincount(ids, weights=weights, minlength=50)
counts = torch.bincount(ids)
hist = torch.histc(weights, bins=20)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(50, 16, device=device)
    optimizer.zero_grad()
    loss = (model(x).squeeze(1) * prior.float()).sum() + counts.sum() * 0 + hist.sum() * 0
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
