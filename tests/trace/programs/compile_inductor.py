import torch

torch.manual_seed(0)
torch.set_num_threads(2)
n = 1 << 21
w = torch.nn.Parameter(torch.randn(1000))
index = torch.randint(0, 1000, (n,))
scale = torch.randn(n)
opt = torch.optim.SGD([w], lr=0.1)


@torch.compile(backend="inductor")
def loss_of(w, scale):
    y = torch.cos(w) * 2
    z = y[index]  # diverges: op
    return (z * scale).sum()


for step in range(8):
    loss = loss_of(w, scale)
    opt.zero_grad()
    loss.backward()
    opt.step()
