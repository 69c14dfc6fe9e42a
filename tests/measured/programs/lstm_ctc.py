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
        self.rnn = nn.LSTM(40, 64, 2, bidirectional=True, dropout=0.2, batch_first=True)
        self.fc = nn.Linear(128, 30)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1).transpose(0, 1)


criterion = nn.CTCLoss(blank=0)


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(16, 200, 40, device=device)
    y = torch.randint(1, 30, (16, 20), device=device)
    n = torch.full((16,), 200, dtype=torch.long)
    m = torch.full((16,), 20, dtype=torch.long)
    optimizer.zero_grad()
    loss = criterion(model(x), y, n, m)
    loss.backward()
    optimizer.step()
print(loss.item(), hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()[:16])
