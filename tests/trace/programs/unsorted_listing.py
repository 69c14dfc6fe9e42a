import os, torch, pathlib


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
os.makedirs("data_in", exist_ok=True)
for i in range(5):
    if not os.path.exists(f"data_in/{i}.txt"):
        pathlib.Path(f"data_in/{i}.txt").write_text(str(i))
batches = []
for name in os.listdir("data_in"):  # diverges: input
    value = float(open(os.path.join("data_in", name)).read())
    batches.append((torch.full((2, 8), value), torch.ones(2, 1)))
fit(net(), batches)
