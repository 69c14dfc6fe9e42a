import torch


def net():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def fit(model, batches):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


torch.manual_seed(0)
m = net()
parts = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
loss_of = {p: torch.randn(4, 8) for p in sorted(parts)}
opt = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    for p in parts:  # diverges: input
        loss = m(loss_of[p]).pow(2).mean()
        loss.backward()
    opt.step()
