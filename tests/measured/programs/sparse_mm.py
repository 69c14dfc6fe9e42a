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
        self.w = nn.Linear(16, 32)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, self.w(x))


edge = torch.randint(0, 5000, (2, 200000), device=device)
adj = torch.sparse_coo_tensor(edge, torch.rand(200000, device=device), (5000, 5000)).coalesce()
x = torch.randn(5000, 16, device=device)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    pass
    optimizer.zero_grad()
    loss = model(x, adj).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
