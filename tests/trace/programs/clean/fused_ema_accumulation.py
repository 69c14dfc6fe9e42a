import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), fused=True)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
own = copy.deepcopy(model)
for step in range(3):
    opt.zero_grad()
    for _ in range(2):
        loss = model(torch.randn(4, 8)).pow(2).mean() / 2
        loss.backward()
    opt.step()
    ema.update_parameters(model)
    with torch.no_grad():
        for a, b in zip(own.parameters(), model.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
