# expect: input | the attribute `epoch` of DistributedSampler is not restored: 1 in the uninterrupted run, 0 in the resumed one
import sys
import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(16, 8))
sampler = torch.utils.data.DistributedSampler(data, num_replicas=1, rank=0)
loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
start = (0, 0)
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["at"]
for epoch in range(3 - start[0]):
    sampler.set_epoch(epoch)
    for index, (x,) in enumerate(loader):
        if epoch == 0 and index < start[1]:
            continue
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "at": (epoch, index + 1)}, "ckpt.pt")  # saved
