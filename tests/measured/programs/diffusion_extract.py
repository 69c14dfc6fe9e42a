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

def extract(a, t, shape):
    return a.gather(-1, t).reshape(len(t), 1, 1, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 3, 3, padding=1)
        self.register_buffer("alphas", torch.linspace(0.99, 0.1, 1000))

    def forward(self, x):
        t = torch.randint(0, 1000, (x.shape[0],), device=x.device)
        noise = torch.randn_like(x)
        a = extract(self.alphas, t, x.shape)
        return F.mse_loss(self.net(a.sqrt() * x + (1 - a).sqrt() * noise), noise)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(64, 3, 32, 32, device=device)
    optimizer.zero_grad()
    loss = model(x)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
