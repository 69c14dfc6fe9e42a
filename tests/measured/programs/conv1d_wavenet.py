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
        self.net = nn.Sequential(nn.Conv1d(1, 32, 16, stride=4), nn.ReLU(), nn.Conv1d(32, 32, 3, dilation=4, padding=4), nn.ReLU(), nn.ConvTranspose1d(32, 1, 16, stride=4))

    def forward(self, x):
        return self.net(x)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(16, 1, 16000, device=device)
    optimizer.zero_grad()
    loss = F.l1_loss(model(x), x)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
