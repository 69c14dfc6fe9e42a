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
        self.net = nn.Conv1d(1, 1, 9, padding=4)

    def forward(self, x):
        y = self.net(x).squeeze(1)
        return torch.stft(y, 512, window=torch.hann_window(512, device=y.device), return_complex=True).abs()


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(16, 1, 16000, device=device)
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
