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
pad = torch.empty(4, 8)  # diverges: uninitialized
pad[:2] = 1.0
fit(m, [(pad, torch.ones(4, 1))] * 2)
