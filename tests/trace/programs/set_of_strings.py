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
names = {"cat", "dog", "bird", "fish", "horse", "ant", "eel", "goat", "jay", "kiwi", "lynx", "mole"}
table = {n: torch.full((8,), float(len(n) + ord(n[0]))) for n in sorted(names)}
batches = []
for n in names:  # diverges: input
    batches.append((table[n].expand(2, 8) / 100, torch.ones(2, 1)))
fit(net(), batches)
