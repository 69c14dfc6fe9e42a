import torch

torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Linear(6, 6) for _ in range(12)])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(4, 6)
decayed = set(net.parameters())
for step in range(2):
    loss = net(x).pow(2).mean()
    for p in decayed:  # diverges: input
        loss = loss + 0.01 * p.square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
