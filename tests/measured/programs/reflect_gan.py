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
        self.a = nn.Conv2d(3, 32, 3, padding=1)
        self.pad = nn.ReflectionPad2d(3)
        self.b = nn.Conv2d(32, 3, 7)

    def forward(self, x):
        return torch.tanh(self.b(self.pad(torch.relu(self.a(x)))))


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(8, 3, 128, 128, device=device)
    optimizer.zero_grad()
    loss = F.l1_loss(model(x), x)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
