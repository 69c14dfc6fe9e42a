import torch


def net():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16),  # diverges: rng
        torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
    )


def fit(model, batches):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


m = net()
fit(m, [(torch.ones(4, 8), torch.ones(4, 1))] * 2)
