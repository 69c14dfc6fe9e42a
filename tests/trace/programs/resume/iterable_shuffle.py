# expect: input | position in the IterableDataset `Stream`, or its shuffle order, is not restored: this is the batch of step 3
import sys
import torch
from torch import nn

torch.manual_seed(0)
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        # Its buffer is filled in another order in every epoch.
        self._epoch = getattr(self, "_epoch", 0) + 1
        generator = torch.Generator().manual_seed(self._epoch)
        for index in torch.randperm(16, generator=generator).tolist():
            yield (data[index][0],)


data = torch.utils.data.TensorDataset(torch.randn(16, 8))
loader = torch.utils.data.DataLoader(Stream(), batch_size=4)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
start = (0, 0)
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["at"]
for epoch in range(start[0], 3):
    for index, (x,) in enumerate(loader):
        if epoch == start[0] and index < start[1]:
            continue
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "at": (epoch, index + 1)}, "ckpt.pt")  # saved
