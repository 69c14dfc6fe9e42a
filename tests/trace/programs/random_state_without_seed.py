import uuid

import numpy as np
import torch

torch.manual_seed(0)
name = uuid.uuid4().hex
state = np.random.RandomState()  # diverges: rng
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    x = torch.from_numpy(state.normal(size=(2, 4)).astype(np.float32))
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
