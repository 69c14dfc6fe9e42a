import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(2)
n = 1 << 20


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(1000))

    def forward(self, index, scale):
        if dist.get_rank() == 1:
            return (self.w[index] * scale).sum()  # diverges: op
        return (self.w * scale[:1000]).sum()


model = DistributedDataParallel(Model())
opt = torch.optim.SGD(model.parameters(), lr=0.1)
index, scale = torch.randint(0, 1000, (n,)), torch.randn(n)
for step in range(6):
    loss = model(index, scale)
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
