# expect: rng | generator: numpy generator
import random, sys
import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
start = 0
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["step"]
    random.setstate(state["rng"][0])
    torch.set_rng_state(state["rng"][2])
for step in range(start, 6):
    x = torch.randn(4, 8) + random.random() + torch.from_numpy(np.random.rand(8).astype('float32'))
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1, "rng": (random.getstate(), np.random.get_state(), torch.get_rng_state())}, "ckpt.pt")  # saved
