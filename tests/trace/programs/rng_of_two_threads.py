import threading, torch, time, random


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
batches = [[], []]


def load(k):
    for i in range(200):
        time.sleep(random.random() / 5000)
        x = torch.randn(2, 8)  # diverges: rng
        batches[k].append((x, torch.ones(2, 1)))


ts = [threading.Thread(target=load, args=(k,)) for k in range(2)]
[t.start() for t in ts]
[t.join() for t in ts]
fit(net(), batches[0])
