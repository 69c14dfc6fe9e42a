# expect: state | buffer: Sequential.1.running_mean
import random, sys
import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
start = 0
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"], strict=False)
    opt.load_state_dict(state["opt"])
    start = state["step"]
for step in range(start, 6):
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.save({"model": dict(model.named_parameters()), "opt": opt.state_dict(), "step": step + 1}, "ckpt.pt")  # saved
