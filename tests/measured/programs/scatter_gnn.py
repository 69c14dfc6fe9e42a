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
        self.a = nn.Linear(16, 32)
        self.b = nn.Linear(32, 4)

    def forward(self, x, edge):
        h = self.a(x)
        src, dst = edge
        out = torch.zeros_like(h)
        out = out.index_add(0, dst, h[src])
        return self.b(torch.relu(out))


edge = torch.randint(0, 5000, (2, 200000), device=device)
x = torch.randn(5000, 16, device=device)
y = torch.randint(0, 4, (5000,), device=device)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    pass
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edge), y)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
