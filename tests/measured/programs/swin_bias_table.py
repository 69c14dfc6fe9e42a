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
        self.table = nn.Parameter(torch.randn(169, 4))
        self.register_buffer("index", torch.randint(0, 169, (49, 49)))

    def forward(self, x):
        bias = self.table[self.index.view(-1)].view(49, 49, 4).permute(2, 0, 1)
        return (x + bias).softmax(-1)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(512, 4, 49, 49, device=device)
    optimizer.zero_grad()
    loss = (model(x) * x).sum()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
