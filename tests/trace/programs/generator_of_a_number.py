import numpy as np
import torch

torch.manual_seed(0)


class Brightness:
    def __init__(self):
        self.generator = np.random.default_rng()  # diverges: rng

    def __call__(self, x):
        return x * float(self.generator.uniform(0.9, 1.1))


change = Brightness()
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    opt.zero_grad()
    net(change(torch.ones(2, 4))).sum().backward()
    opt.step()
