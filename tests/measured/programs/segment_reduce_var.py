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
        self.fc = nn.Linear(16, 8)

    def forward(self, x, index):
        h = self.fc(x)
        out = torch.zeros(300, 8, device=x.device)
        mean = out.scatter_reduce(0, index[:, None].expand(-1, 8), h, reduce="mean", include_self=False)
        top = out.scatter_reduce(0, index[:, None].expand(-1, 8), h, reduce="amax", include_self=False)
        return mean + top


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(100000, 16, device=device)
    index = torch.randint(0, 300, (100000,), device=device)
    optimizer.zero_grad()
    loss = model(x, index).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
