import torch

torch.manual_seed(0)
torch.set_num_threads(2)
n = 1 << 21
w = torch.nn.Parameter(torch.randn(1000))
idx = torch.randint(0, 1000, (n,))
src = torch.randn(n)
opt = torch.optim.SGD([w], lr=0.1)
for step in range(8):
    hist = torch.zeros(1000)
    hist.index_put_((idx,), src, accumulate=True)  # diverges: op
    loss = (w * hist).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
