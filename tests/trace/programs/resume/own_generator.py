# expect: rng | generator: numpy.Generator
import random, sys
import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
augment = np.random.default_rng(7)
start = 0
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["step"]
for step in range(start, 6):
    x = torch.from_numpy(augment.random((4, 8), dtype=np.float32))
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1}, "ckpt.pt")  # saved
