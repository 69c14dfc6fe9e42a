# expect: scalar |
import random, sys
import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
calls = 0
start = 0
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["step"]
    torch.set_rng_state(state["rng"])
for step in range(start, 6):
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
    calls += 1
    x = nn.functional.dropout(x, 0.1 * calls)  # line
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1, "rng": torch.get_rng_state()}, "ckpt.pt")  # saved
