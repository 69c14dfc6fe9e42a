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
        self.fc = nn.Linear(64, 128)

    def forward(self, a, b):
        a, b = F.normalize(self.fc(a)), F.normalize(self.fc(b))
        sim = torch.cat([a, b]) @ torch.cat([a, b]).t() / 0.1
        mask = ~torch.eye(len(sim), dtype=torch.bool, device=sim.device)
        labels = torch.cat([torch.arange(len(a)) + len(a), torch.arange(len(a))]).to(sim.device)
        return F.cross_entropy(sim.masked_fill(~mask, -1e9), labels)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    a = torch.randn(512, 64, device=device)
    b = a + 0.1 * torch.randn(512, 64, device=device)
    optimizer.zero_grad()
    loss = model(a, b)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
