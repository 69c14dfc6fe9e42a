import torch

torch.manual_seed(0)
torch.set_num_threads(2)
n = 1 << 21
w = torch.nn.Parameter(torch.randn(1000))
idx = torch.randint(0, 1000, (n,))
opt = torch.optim.SGD([w], lr=0.1)
scale = torch.randn(n)
for step in range(8):
    y = w[idx]  # diverges: op
    loss = (y * scale).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
