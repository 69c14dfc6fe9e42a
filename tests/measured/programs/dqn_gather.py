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
        self.fc = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 4))

    def forward(self, x):
        return self.fc(x)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    s = torch.randn(512, 8, device=device)
    a = torch.randint(0, 4, (512,), device=device)
    q = model(s).gather(1, a.unsqueeze(1)).squeeze(1)
    target = torch.randn(512, device=device)
    optimizer.zero_grad()
    loss = F.smooth_l1_loss(q, target)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
