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
        self.a = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x):
        return self.a(x)


criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0]).cuda())


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(8, 3, 128, 128, device=device)
    y = torch.randint(0, 5, (8, 128, 128), device=device)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
